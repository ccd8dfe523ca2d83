import { once } from "node:events";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { createContext, runInContext } from "node:vm";
import { brotliCompressSync } from "node:zlib";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { browserPath, patience, startBrowser, whyNoBrowser } from "../../../tools/testing/browser.ts";
import type { Answer, answers, Golden } from "./testing/golden-contract.ts";
import { toHex } from "./testing/hex.ts";

const folder = import.meta.dirname;
// As text: JSON.stringify would make 0 of −0.0.
const goldenText = `{${globSync("{codecs/*,vote}/vectors.json", { cwd: folder })
  .map((file) => `${JSON.stringify(basename(dirname(file)))}: ${readFileSync(join(folder, file), "utf8")}`)
  .join(", ")}}`;
const golden: Golden = JSON.parse(goldenText);

/** The script that a page would load. Fails if it needs what a browser does not have, such as `node:` modules. */
async function bundled(entry: string, format: "esm" | "iife", { minify = true } = {}): Promise<string> {
  const { outputFiles, errors } = await build({
    entryPoints: [resolve(folder, entry)],
    bundle: true,
    minify,
    platform: "browser",
    conditions: ["@terse/source"],
    target: "es2023",
    format,
    globalName: "terse",
    write: false,
    logLevel: "silent",
  });
  expect(errors).toEqual([]);
  return outputFiles[0]!.text;
}

function expectGolden(given: readonly Answer[]): void {
  const expected = Object.entries(golden).flatMap(([codec, { cases }]) =>
    cases.map((each) => {
      if (!("votes" in each)) {
        const sum = toHex(new Uint8Array(new Float32Array(each.sum).buffer));
        return { codec, implementation: "typescript", wire: each.wire, sum };
      }
      const { n, votes, ...results } = each;
      return { codec, implementation: "typescript", ...results };
    }),
  );
  expect(given.length).toBe(expected.length);
  expected.forEach(({ codec, ...results }, i) => {
    expect({ codec, ...given[i] }).toEqual({ codec, ...results });
  });
}

describe("without Node", () => {
  it("gives the golden bytes of every codec and of the vote where there is nothing but the language", async () => {
    const nothing = createContext({});
    runInContext(await bundled("testing/golden-contract.ts", "iife"), nothing);
    expect(runInContext("typeof process + typeof Buffer + typeof require", nothing)).toBe("undefined".repeat(3));
    nothing["golden"] = goldenText;
    expectGolden(JSON.parse(runInContext("JSON.stringify(terse.answers(JSON.parse(golden)))", nothing)));
  });

  it("names nothing of Node's in what a page loads, which is small", async () => {
    const page = await bundled("index.ts", "esm");
    const lines = readFileSync(join(folder, "../README.md"), "utf8").split("\n");
    const at = lines.findIndex((line) => line.includes("codecs together take"));
    const [, most] = /codecs together take ([\d.]+) kB/.exec(lines[at]!)!;
    const kB = (bytes: number) => `${Math.ceil(bytes / 100) / 10} kB`;
    const line = `codecs together take ${kB(page.length)} (${kB(brotliCompressSync(page).length)})`;
    expect(page.length, `packages/codecs/README.md:${at + 1}: ${line}`).toBeLessThanOrEqual(1000 * Number(most));
    expect(page).not.toMatch(/"node:|\bprocess\.|\bBuffer\b|\brequire\(/);
  });
});

describe("as published, in one file,", () => {
  it("leaves out of a page what it does not use", async () => {
    const folder = mkdtempSync(join(tmpdir(), "terse-page-"));
    try {
      writeFileSync(join(folder, "codecs.js"), await bundled("index.ts", "esm", { minify: false }));
      writeFileSync(join(folder, "page.js"), `export { sign } from "./codecs.js";`);
      const page = await bundled(join(folder, "page.js"), "esm");
      expect(page.length).toBeLessThan(12_500); // as README.md says
      expect(page).not.toContain("scaled-sign");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("in a headless Chromium", () => {
  it.skipIf(!browserPath)(`gives the golden bytes of every codec and of the vote${whyNoBrowser}`, async () => {
    expectGolden(await answersOfPage(await bundled("testing/golden-contract.ts", "esm")));
  });
});

/** Serves a page on localhost, lets a browser open it, and gives what the program answers there. */
async function answersOfPage(program: string): Promise<ReturnType<typeof answers>> {
  const files: Record<string, [type: string, body: string]> = {
    "/": ["text/html", "<!doctype html>"],
    "/codecs.js": ["text/javascript", program],
    "/golden.json": ["application/json", goldenText],
  };
  const server = createServer((request, response) => {
    const file = files[request.url ?? ""];
    if (file) response.writeHead(200, { "content-type": file[0] }).end(file[1]);
    else response.writeHead(404).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const browser = await startBrowser();
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(patience);
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const answered = await page.evaluate<string>(`(async () => {
      const { answers } = await import("/codecs.js");
      return JSON.stringify(answers(await (await fetch("/golden.json")).json()));
    })()`);
    return JSON.parse(answered);
  } finally {
    await browser.close();
    server.close();
  }
}
