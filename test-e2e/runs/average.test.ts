/** Runs with an average of their weights. */
import { cpSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { exportCommand } from "../../apps/train/src/commands/export.ts";
import { terseIn, tinyTraining, trainingFolder } from "./terse.ts";

const { folder, text } = trainingFolder("average");
const terse = (...args: string[]) => terseIn(folder, args);
const options = ["--sample.bytes=0", "--evaluate.every=4", "--optimizer.lr=3e-3"];
const train = (...args: string[]) => terse(...tinyTraining(text), ...options, ...args);
const bytesOf = (run: string, file: string) => readFileSync(join(run, file));
const lines = (run: string) =>
  readFileSync(join(run, "metrics.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, number>);
const ofAverage = (run: string) =>
  lines(run).flatMap(({ step, "val/loss_of_average": loss }) => (loss === undefined ? [] : [[step!, loss]]));

it("evaluates and saves it, goes on bit for bit, also on other ranks, and gives it to all commands", async () => {
  const average = ["--average.decay=0.8", "--average.from=2"];
  const whole = join(folder, "whole");
  const ran = await train("--steps=12", ...average, "--save.best=true", "--out", whole);
  expect([ran.code, ran.err]).toEqual([0, ""]);
  expect(ran.out).toMatch(/^step: 8 {2}validation_loss: \d\.\d+ {2}validation_loss_of_average: \d\.\d+$/m);
  expect(ofAverage(whole).map(([step]) => step)).toEqual([4, 8, 12]); // it had not begun before the first step

  const manifest = JSON.parse(bytesOf(whole, "step-12/manifest.json").toString());
  const lowest = ofAverage(whole).sort(([, a], [, b]) => a! - b!)[0]!;
  expect(manifest.validated.best).toEqual({ step: lowest[0], loss: lowest[1] });

  const again = join(folder, "again");
  cpSync(join(whole, "step-8"), join(again, "step-8"), { recursive: true });
  const resumed = await terse("train", "--resume", again);
  expect([resumed.code, resumed.err]).toEqual([0, ""]);
  for (const file of ["average/model.safetensors", "average/config.json", "model.safetensors"])
    expect(bytesOf(again, `step-12/${file}`).equals(bytesOf(whole, `step-12/${file}`))).toBe(true);
  expect(bytesOf(whole, "step-12/average/model.safetensors").equals(bytesOf(whole, "step-12/model.safetensors"))).toBe(
    false,
  );
  expect(ofAverage(again).at(-1)).toEqual(ofAverage(whole).at(-1));

  const alone = join(folder, "alone");
  cpSync(join(whole, "step-12"), join(alone, "step-12"), { recursive: true });
  const one = await terse("train", "--resume", alone, "--nproc-per-node=1", "--steps=13");
  expect([one.code, one.err]).toEqual([0, ""]);
  // The evaluation with which it goes on has the average of the save.
  expect(one.out).toContain(
    `step: 12  validation_loss: ${lines(whole)
      .findLast((line) => "val/loss" in line)!
      ["val/loss"]!.toFixed(4)}  validation_loss_of_average: ${ofAverage(whole).at(-1)![1]!.toFixed(4)}`,
  );

  const evaluated = async (of: string) => {
    const { code, out, err } = await terse("eval", join(whole, of), "--json");
    expect([code, err.replace(/evaluation.*\n?/g, "")]).toEqual([
      0,
      "data: evaluates on what is held out of text.txt, 90.0 kB\n",
    ]);
    return JSON.parse(out).metrics.loss as number;
  };
  expect(await evaluated("average")).toBe(ofAverage(whole).at(-1)![1]);
  expect(await evaluated("step-8/average")).toBe(ofAverage(whole).at(-2)![1]);
  expect(await evaluated("best/average")).toBe(lowest[1]);
  const sampled = async (of: string) => (await terse("sample", join(whole, of), "--bytes=60")).out;
  expect(await sampled("average")).toBe(await sampled("step-12/average"));
  expect(await sampled("average")).not.toBe(await sampled("step-12"));
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  await exportCommand([join(whole, "average"), "--out", join(folder, "exported")]);
  expect(
    bytesOf(folder, "exported/model.safetensors").equals(bytesOf(whole, "step-12/average/model.safetensors")),
  ).toBe(true);
  const from = await train("--steps=1", "--init-from", join(whole, "average"), "--out", join(folder, "from"));
  expect([from.code, from.err]).toEqual([0, ""]);
  const whole12 = await terse("train", "--resume", join(whole, "average"));
  expect(whole12.err).toMatch(/average is an average of weights, and a run goes on from a whole save: name .*whole/);
});

it("is said to be missing where a run has none, and begins where a run goes on with one", async () => {
  const run = join(folder, "without");
  await train("--steps=4", "--out", run);
  expect(existsSync(join(run, "step-4/average"))).toBe(false);
  const { code, err } = await terse("sample", join(run, "average"));
  expect(code).toBe(1);
  expect(err).toMatch(/step-4 has no average of the weights: its recipe has no section average, or it had not begun/);
  const more = await terse("train", "--resume", run, "--steps=8", "--average.decay=0.5");
  expect([more.code, more.err]).toEqual([0, ""]);
  expect(ofAverage(run).map(([step]) => step)).toEqual([8]);
});
