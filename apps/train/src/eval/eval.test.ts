/** Evaluations of folders with weights, beside transformers. */
import { cpSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveModel } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import { Gpt2 } from "@terse/models";
import { manualSeed } from "@terse/tensor";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { needsModules, runPython } from "../../../../packages/tensor/src/testing/python.ts";
import { readArguments } from "../arguments.ts";
import { checkClassNames } from "../saves/meanings.ts";
import { evaluation } from "./eval.ts";
import type { EvalArguments } from "./eval-arguments.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-eval-"));
const [weights, tokens] = [join(folder, "weights"), join(folder, "rows.bin")];
const [context, rows] = [16, 23];
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(() => {
  for (const stream of [process.stdout, process.stderr]) vi.spyOn(stream, "write").mockReturnValue(true);
  return () => vi.restoreAllMocks();
});

beforeAll(async () => {
  manualSeed(3);
  const model = new Gpt2({ vocabulary: 256, context, width: 16, heads: 2, layers: 1 });
  await saveModel(weights, model.namedParameters(), model.config);
  writeFileSync(
    tokens,
    Uint16Array.from({ length: rows * context + 1 }, (_, i) => (i * i * 7 + i) % 256),
  );
});

async function onRanks(ranks: number, ...argv: string[]) {
  const args = readArguments(["eval", ...argv], {}) as EvalArguments;
  const groups = loopback(ranks);
  try {
    return await Promise.all(groups.map((group) => evaluation(args, group)));
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}

const given = () => [
  weights,
  "--data",
  tokens,
  "--data.name=tokens",
  "--data.vocabulary=256",
  "--data.tokenizer=bytes",
];
const missing = needsModules("transformers");

it.skipIf(missing !== "")(
  `equals transformers' loss on the same rows, the same bits on every number of ranks${missing}`,
  async () => {
    const found = (await Promise.all([1, 2, 3].map((ranks) => onRanks(ranks, ...given())))).flat();
    const losses = found.map(({ metrics }) => metrics["loss"]!);
    expect(new Set(losses).size).toBe(1);
    expect(found[0]).toMatchObject({ rows, heldOutRows: rows });
    const theirs = await runPython(`
import numpy as np, torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(${JSON.stringify(weights)}).eval()
ids = torch.from_numpy(np.fromfile(${JSON.stringify(tokens)}, dtype=np.uint16).astype(np.int64))
rows = torch.stack([ids[i * ${context} : (i + 1) * ${context}] for i in range(${rows})])
following = torch.stack([ids[i * ${context} + 1 : (i + 1) * ${context} + 1] for i in range(${rows})])
with torch.no_grad():
    logits = model(rows).logits
    outputs["loss"] = torch.nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten()).reshape(1)
`);
    const [loss] = await theirs["loss"]!.toTypedArray();
    expect(Math.abs(losses[0]! / Number(loss) - 1)).toBeLessThan(1e-5);
  },
);

it("asks for the data of a folder, and refuses classes that the data numbers in another order", async () => {
  await expect(onRanks(2, weights)).rejects.toThrow(
    `${weights} has weights and no data: name what it is to be evaluated on`,
  );
  const model = { id2label: { 0: "cat", 1: "cow", 2: "dog" } };
  expect(() => checkClassNames(model, { classNames: ["cat", "dog"] })).toThrow(
    "data: dog is class 1 there, and class 2 of the model",
  );
  for (const classNames of [["cat", "cow"], ["cat", "fox"], []]) checkClassNames(model, { classNames });
});

it("says what it is evaluated on", async () => {
  await onRanks(1, ...given());
  const said = vi.mocked(process.stderr.write).mock.calls.map(([text]) => String(text));
  expect(said).toContain("data: evaluates on rows.bin, 738 B\n");
  expect(said.join("")).not.toContain("tokenizer");
});

it("says that the data is read by another tokenizer than that of the weights", async () => {
  const own = join(folder, "own");
  cpSync(weights, own, { recursive: true });
  writeFileSync(join(own, "tokenizer.json"), "{}");
  await onRanks(1, own, ...given().slice(1));
  const said = vi.mocked(process.stderr.write).mock.calls.map(([text]) => String(text));
  expect(said).toContain(
    `data.tokenizer is bytes, and the weights come with another one, ${own}: tokens may mean something else\n`,
  );
});

it("sends no weights where every rank has the same files", async () => {
  const args = readArguments(["eval", ...given()], {}) as EvalArguments;
  const groups = loopback(2);
  try {
    await Promise.all(groups.map((group) => evaluation(args, group)));
    const sent = groups.reduce((sum, group) => sum + group.sent().bytes, 0);
    expect(sent).toBeLessThan(statSync(join(weights, "model.safetensors")).size / 4);
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
});
