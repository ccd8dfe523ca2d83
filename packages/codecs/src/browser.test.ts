import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { createContext, runInContext } from "node:vm";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { toHex } from "./codec-contract.ts";
import type { Answer, answers, Golden } from "./golden-contract.ts";

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
    runInContext(await bundled("golden-contract.ts", "iife"), nothing);
    expect(runInContext("typeof process + typeof Buffer + typeof require", nothing)).toBe("undefined".repeat(3));
    nothing["golden"] = goldenText;
    expectGolden(JSON.parse(runInContext("JSON.stringify(terse.answers(JSON.parse(golden)))", nothing)));
  });

  it("names nothing of Node's in what a page loads, which is small", async () => {
    const page = await bundled("index.ts", "esm");
    expect(page.length).toBeLessThan(36_500); // as README.md says
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
      expect(page.length).toBeLessThan(10_000); // as README.md says
      expect(page).not.toContain("scaled-sign");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

const browser = process.env["TERSE_BROWSER"] || browserOnPath();
const why = browser
  ? ""
  : ` (skipped: ${process.env["TERSE_BROWSER_MISSING"] ?? "no chromium or google-chrome on the PATH, and TERSE_BROWSER names none; ./terse test brings one"})`;

describe("in a headless Chromium", () => {
  it.skipIf(!browser)(`gives the golden bytes of every codec and of the vote${why}`, async () => {
    expectGolden(await answersOfPage(await bundled("golden-contract.ts", "esm")));
  });
});

const page = `<!doctype html>
<script type="module">
  const send = (path, body) => fetch(path, { method: "POST", body });
  try {
    const { answers } = await import("/codecs.js");
    const golden = await (await fetch("/golden.json")).json();
    await send("/answers", JSON.stringify(answers(golden)));
  } catch (error) {
    await send("/failure", String(error)); // not its stack, whose addresses are no files of ours
  }
</script>`;

/** Serves the page on localhost, lets a browser open it, and gives what the page posts back. */
async function answersOfPage(program: string): Promise<ReturnType<typeof answers>> {
  const files: Record<string, [type: string, body: string]> = {
    "/": ["text/html", page],
    "/codecs.js": ["text/javascript", program],
    "/golden.json": ["application/json", goldenText],
  };
  const posted = Promise.withResolvers<ReturnType<typeof answers>>();
  const asked: string[] = [];
  const receive = async (request: IncomingMessage) => {
    const body = await text(request);
    if (request.url === "/answers") posted.resolve(JSON.parse(body));
    else posted.reject(new Error(`the page failed: ${body}`));
  };
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const file = files[request.url ?? ""];
    if (request.method === "POST") response.writeHead(204).end();
    else if (file) response.writeHead(200, { "content-type": file[0] }).end(file[1]);
    else response.writeHead(404).end();
    if (request.method === "POST") receive(request).catch(posted.reject);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");

  const profile = mkdtempSync(join(tmpdir(), "terse-browser-"));
  const quiet =
    "--no-first-run --disable-background-networking --disable-component-update --disable-sync --disable-quic";
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", ...quiet.split(" ")];
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const child = spawn(browser!, [...flags, `--user-data-dir=${profile}`, "--remote-debugging-port=0", address], {
    detached: true, // a group of its own: a browser is many processes
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (more: string) => {
    said += more;
  });
  const fail = (how: string) =>
    posted.reject(new Error(`${browser} ${how}; it asked for: ${asked.join(", ") || "nothing"}\n${said.slice(-2000)}`));
  child.on("error", (error) => fail(`did not start: ${error.message}`));
  child.on("exit", (code, signal) => fail(`ended with ${signal ?? code}`));
  const patience = setTimeout(() => fail("gave no answers in 90 s"), 90_000);
  try {
    return await posted.promise;
  } finally {
    clearTimeout(patience);
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      process.kill(-child.pid, "SIGKILL");
      await once(child, "exit");
    }
    server.closeAllConnections();
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  }
}

function browserOnPath(): string | undefined {
  const names = ["chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "google-chrome-stable"];
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  return globSync(folders.flatMap((path) => names.map((name) => join(path, name))))[0];
}
