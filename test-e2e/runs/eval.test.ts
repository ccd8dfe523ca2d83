/** `./terse eval` of a run: the loss that training has measured, on any number of ranks, and what it refuses. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { terseIn, tinyTraining, trainingFolder } from "./terse.ts";

const { folder, text } = trainingFolder("eval");
const evaluated = async (...args: string[]) => {
  const { code, out, err } = await terseIn(folder, ["eval", ...args, "--json"]);
  expect([code, code === 0 ? "" : err]).toEqual([0, ""]);
  return JSON.parse(out) as { metrics: Record<string, number>; rows: number; heldOutRows: number; ranks: number };
};

beforeAll(async () => {
  writeFileSync(text, Array.from({ length: 8000 }, (_, i) => `${(i * i) % 9973} `).join(""));
  const training = [...tinyTraining(text), "--steps=4", "--evaluate.windows=43", "--sample.bytes=0", "--out=run"];
  expect((await terseIn(folder, training)).code).toBe(0);
});

describe("./terse eval", () => {
  it("measures what training has, bit for bit, on 1, 2 and 3 ranks; the last batch is shorter", async () => {
    const lines = readFileSync(join(folder, "run/metrics.jsonl"), "utf8").trimEnd().split("\n");
    const losses = lines.flatMap((line) => (JSON.parse(line) as Record<string, number>)["val/loss"] ?? []);
    for (const ranks of [1, 2, 3]) {
      const found = await evaluated("run", `--nproc-per-node=${ranks}`);
      expect(found).toMatchObject({ ranks, rows: 43 });
      expect(found.metrics["loss"]).toBe(losses.at(-1));
      expect(found.metrics["perplexity"]).toBe(Math.exp(losses.at(-1)!));
    }
  });

  it("takes all of the data that is given, or a share of it, and other rows of the run's", async () => {
    const other = join(folder, "other.txt");
    writeFileSync(other, readFileSync(text).subarray(0, 64 * 50 + 1));
    expect(await evaluated("run/step-4", "--data", other)).toMatchObject({ rows: 50, heldOutRows: 50 });
    const share = await evaluated("run", "--data", other, "--data.validationFraction=0.5");
    expect(share).toMatchObject({ rows: 24, heldOutRows: 24 });
    const all = await evaluated("run", "--evaluate.windows=all");
    expect(all.rows).toBe(all.heldOutRows);
    expect(all.rows).toBeGreaterThan(43);
  });

  it("says in one line what it cannot evaluate, and leaves no folder behind", async () => {
    mkdirSync(join(folder, "empty"));
    for (const [args, problem] of [
      [["nowhere"], "there is no folder nowhere"],
      [["empty"], "empty has no saved run (step-N/manifest.json), and no weights"],
      [["run", "--data=nothing"], "There is no file or folder at nothing"],
      [["run", "--data.tokenizer=gpt2"], "data: it has 50257 different tokens, and the model 256"],
      [["run", "--data.blockSize=4096"], "rows of 4096 tokens do not fit the model's context of 64; take at most 64"],
      [
        ["run", "--data.name=made-images"],
        /^error: model\.name: gpt reads tokens\b.*, and data\.name: made-images has images, labels;/m,
      ],
      [["run", "--data.validationFraction=0"], "has nothing that is held out; give a larger data.validationFraction"],
      [["run", "--optimizer.lr=1"], "--optimizer.lr: unknown flag"],
      [["run", "run"], "eval takes one run or folder"],
      [["run", "--evaluate.every=5"], "--evaluate.every: eval evaluates once"],
    ] as const) {
      const { code, out, err } = await terseIn(folder, ["eval", ...args]);
      expect([code, out, err.trimEnd().split("\n").length]).toEqual([1, "", 1]);
      expect(err).toMatch(problem); // a text is looked for as it is
    }
    expect(existsSync(join(folder, "runs"))).toBe(false);
  });
});
