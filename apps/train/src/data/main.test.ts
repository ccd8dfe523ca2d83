/** `./terse data`, as a user runs it. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { nodeFlags } from "../../../../tools/programs.ts";
import { readArguments, type TrainArguments } from "../arguments.ts";
import { buildModel } from "../build.ts";
import { readRecipe } from "../recipe.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-data-main-"));
  writeFileSync(join(folder, "text.txt"), "The quick brown fox. ".repeat(100));
  writeFileSync(join(folder, "texts.jsonl"), '{"body":"The quick brown fox."}\n'.repeat(100));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const prepare = (...argv: string[]) => run("prepare", ...argv);

function run(...argv: string[]) {
  const main = fileURLToPath(new URL("main.ts", import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [...nodeFlags, main, ...argv], {
    cwd: folder,
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

it.each([
  ["gpt2", "--model.name=gpt2"],
  ["bytes", "--data.vocabulary=256 --data.tokenizer=bytes --model.vocabulary=256"],
])("ends with the flags of a run that can read the tokens, of %s", (tokenizer, flags) => {
  const { stdout, stderr } = prepare("text.txt", "--tokenizer", tokenizer, "--out", tokenizer);
  expect(stdout, stderr).toContain(`train with --data.name=tokens --data.path=${tokenizer} ${flags}\n`);
  const words = /^train with (.*)$/m.exec(stdout)![1]!.split(" ");
  const { overrides } = readArguments(["train", ...words, "--model.width=8", "--model.heads=1"]) as TrainArguments;
  expect(buildModel(readRecipe("gpt-small", overrides)).parameterCount()).toBeGreaterThan(0);
});

it("names the nearest published data where there is no such file", () => {
  expect(prepare("cifar").stderr).toBe(
    "error: there is no file or folder at cifar, and no published data has this name; did you mean cifar10?\n",
  );
});

it("shows rows for fine-tuning, with what is learned of them, and says what is left out", () => {
  const row = (content: string) => ({
    messages: [
      { role: "user", content: "hi" },
      { role: "assistant", content },
    ],
  });
  const rows = [row("yo"), { messages: [] }, row("a\u001b[2Jb"), row("last")].map(
    (each) => `${JSON.stringify(each)}\n`,
  );
  writeFileSync(join(folder, "rows.jsonl"), rows.join(""));
  const { status, stdout, stderr } = run("look", "rows.jsonl", "--template=chatml", "--rows=2");
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n⟦yo<|im_end|>⟧\n");
  expect(stdout).toContain("⟦a·[2Jb<|im_end|>⟧");
  expect(stdout).toContain("\ndata: left out: 1 row without an answer\n");
  expect(stdout).not.toContain("last");
  expect(run("look", "rows.jsonl").stderr).toMatch(
    /^error: bytes has no chat template .*; name chatml, or the path of .* by --template for sample and data/,
  );
  expect(run("look", "rows.jsonl", "--loss=some").stderr).toMatch(/data\.loss/);
  expect(run("look").stderr).toBe("error: look takes one file or folder of rows; got 0\n");
  expect(run("lok").stderr).toBe("error: data lok: the commands are ./terse data prepare and look; see --help\n");
});

it("prepares rows for fine-tuning, and ends with the flags of a run that reads them", () => {
  const row = (i: number) => ({ prompt: `${i}: `, completion: "an answer" });
  writeFileSync(
    join(folder, "pairs.jsonl"),
    Array.from({ length: 30 }, (_, i) => `${JSON.stringify(row(i))}\n`).join(""),
  );
  const { status, stdout, stderr } = prepare("pairs.jsonl", "--chat", "--block-size=16", "--out=pairs");
  expect([status, stderr]).toEqual([0, "tokenizing pairs.jsonl: 100 %\n"]);
  expect(stdout).toMatch(/^wrote pairs\/train\.rows: 30 rows, \d+ tokens, /m);
  expect(stdout).toContain("train with --data.name=chat --data.path=pairs --data.blockSize=16\n");
  expect(run("look", "pairs", "--rows=1").stdout).toContain("0: ⟦an answer⟧");
  expect(prepare("none.jsonl", "--chat").stderr).toBe("error: there is no file or folder at none.jsonl\n");
});

it.each([
  ["texts", "--tokenizer=bytes"],
  ["rows", "--chat"],
])("leaves no file of %s where it is interrupted", async (what, flag) => {
  const text = "The quick brown fox. ".repeat(20);
  const path = `many-${what}.jsonl`;
  writeFileSync(join(folder, path), `${JSON.stringify({ text, prompt: text, completion: text })}\n`.repeat(60_000));
  const main = fileURLToPath(new URL("main.ts", import.meta.url));
  const out = join(folder, `${path}-out`);
  const child = spawn(process.execPath, [...nodeFlags, main, "prepare", path, flag, "--out", out], { cwd: folder });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (said === "") child.kill("SIGINT"); // its first line says that it is under way
    said += text;
  });
  const [code] = (await once(child, "close")) as [number];
  expect([code, said]).toEqual([130, expect.stringMatching(/\nSIGINT: nothing was written\n$/)]);
  expect(readdirSync(out)).toEqual([]);
});

it("takes --column for files with columns only", () => {
  expect(prepare("texts.jsonl", "--column=body", "--out=columns").status).toBe(0);
  for (const what of ["text.txt", "cifar10"])
    expect(prepare(what, "--column=body", "--out=none").stderr).toBe(
      `error: --column: ${what} has no columns: jsonl, json, csv, tsv and parquet have them; leave it out\n`,
    );
});
