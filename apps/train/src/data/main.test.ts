/** `./terse data prepare`, as a user runs it. */
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

function prepare(...argv: string[]) {
  const main = fileURLToPath(new URL("main.ts", import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [...nodeFlags, main, "prepare", ...argv], {
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

it("takes --column for files with columns only", () => {
  expect(prepare("texts.jsonl", "--column=body", "--out=columns").status).toBe(0);
  for (const what of ["text.txt", "cifar10"])
    expect(prepare(what, "--column=body", "--out=none").stderr).toBe(
      `error: --column: ${what} has no columns: jsonl, json, csv, tsv and parquet have them; leave it out\n`,
    );
});
