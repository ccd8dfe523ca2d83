/** `./terse data`, as a user runs it. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
    /^error: bytes has no chat template .* set data\.template to chatml/,
  );
  expect(run("look", "rows.jsonl", "--loss=some").stderr).toMatch(/data\.loss/);
  expect(run("look").stderr).toBe("error: look takes one file or folder of rows; got 0\n");
  expect(run("lok").stderr).toBe("error: data lok: the commands are ./terse data prepare and look; see --help\n");
});

it("takes --column for files with columns only", () => {
  expect(prepare("texts.jsonl", "--column=body", "--out=columns").status).toBe(0);
  for (const what of ["text.txt", "cifar10"])
    expect(prepare(what, "--column=body", "--out=none").stderr).toBe(
      `error: --column: ${what} has no columns: jsonl, json, csv, tsv and parquet have them; leave it out\n`,
    );
});
