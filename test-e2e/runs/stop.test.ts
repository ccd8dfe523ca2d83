/** Runs that keep their best save, and that end early. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { terseIn, tinyTraining, trainingFolder } from "./terse.ts";

const { folder, text } = trainingFolder("stop");
const terse = (args: readonly string[]) => terseIn(folder, args);
const train = (...args: string[]) => [...tinyTraining(text), "--sample.bytes=0", "--evaluate.every=2", ...args];

const validated = (run: string): { step: number; loss: number }[] =>
  readFileSync(join(run, "metrics.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, number>)
    .flatMap(({ step, "val/loss": loss }) => (loss === undefined ? [] : [{ step: step!, loss }]));
const saves = (run: string) => readdirSync(run).filter((name) => name.startsWith("step-"));
/** After some steps the loss grows. */
const worse = ["--optimizer.lr=0.3", "--schedule.name=constant"];

describe("save.best", () => {
  it("keeps the save of the lowest validation loss, which RUN/best names for other commands", async () => {
    const run = join(folder, "best");
    const keeps = ["--save.best=true", "--save.every=20", "--save.keep=1"];
    const { code, err, out } = await terse(train("--steps=30", ...worse, ...keeps, "--out", run));
    expect([code, err]).toEqual([0, ""]);
    const [best] = validated(run)
      .filter(({ step }) => step > 0)
      .sort((a, b) => a.loss - b.loss || a.step - b.step);
    expect(best!.step).toBeLessThan(30);
    expect(out).toContain(`\nbest validation: ${best!.loss.toFixed(3)} after ${best!.step} steps\n`);
    const lines = readFileSync(join(run, "metrics.jsonl"), "utf8").trimEnd().split("\n");
    const said = lines.map((line) => JSON.parse(line) as Record<string, number>).findLast((line) => line["best/loss"]);
    expect(said).toEqual({ step: best!.step, "best/step": best!.step, "best/loss": best!.loss });
    expect(saves(run).sort()).toEqual([`step-${best!.step}`, "step-30"].sort());
    const sampled = async (of: string) => (await terse(["sample", join(run, of), "--bytes=40"])).out;
    expect(await sampled("best")).toBe(await sampled(`step-${best!.step}`));
    expect(await sampled("best")).not.toBe(await sampled("step-30"));
    const from = await terse(["train", "--resume", join(run, "best"), `--steps=${best!.step}`]);
    expect(from.err).toBe("");
  });

  it("is said to be gone where it was not kept", async () => {
    const run = join(folder, "without");
    await terse(train("--steps=30", ...worse, "--save.every=20", "--save.keep=1", "--out", run));
    const { code, err } = await terse(["sample", join(run, "best")]);
    expect(code).toBe(1);
    expect(err).toMatch(
      /^error: the best save of .*, after \d+ steps, is not there any more: set save\.best to keep it/,
    );
  });
});

describe("stop", () => {
  it("ends a run that finds no lower loss, with a save; it goes on with more patience alone", async () => {
    const run = join(folder, "patience");
    const stop = ["--logEvery=4", "--stop.patience=2", "--stop.minDelta=100"]; // no loss is lower by so much than the first
    const whole = await terse(train("--steps=40", ...stop, "--save.every=0", "--out", run));
    expect([whole.code, whole.err]).toEqual([0, ""]);
    expect(whole.out).toMatch(
      /^ends after 6 steps: in 2 evaluations the validation loss was not below \d\.\d+ by more than 100, and stop\.patience is 2; to go on, resume it with another stop\.patience$/m,
    );
    expect(whole.out).toMatch(/^resume: .* --stop\.patience=4$/m);
    expect(saves(run)).toEqual(["step-6"]);
    const lines = readFileSync(join(run, "metrics.jsonl"), "utf8").trimEnd().split("\n");
    const timed = lines
      .map((line) => JSON.parse(line) as Record<string, number>)
      .filter((line) => line["step_seconds"]);
    expect(timed.map(({ step }) => step)).toContain(5); // the last one, which logEvery alone leaves out
    const auto = await terse(train("--steps=40", ...stop, "--save.every=0", "--out", run, "--resume=auto"));
    expect([auto.code, auto.err]).toEqual([0, ""]);
    expect(auto.out).toMatch(/^ends after 6 steps/m);
    const more = await terse(["train", "--resume", run, "--stop.patience=4"]);
    expect([more.code, more.err]).toEqual([0, ""]);
    expect(more.out).toMatch(/^ends after 10 steps: in 4 evaluations/m);
    expect(existsSync(join(run, "step-10"))).toBe(true);
  });

  it("ends a run at its target, on ranks with local steps too", async () => {
    const run = join(folder, "target");
    const local = ["--local.syncEvery=2", "--optimizer.name=adamw", "--exchange.gradient=null"];
    const { code, err, out } = await terse(train("--steps=40", ...local, "--stop.target=100", "--out", run));
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/^ends after 2 steps: the validation loss was \d\.\d+ after 2 steps, and stop\.target is 100/m);
    expect(out).toMatch(/^resume: .* --stop=null$/m);
    const more = await terse(["train", "--resume", run, "--stop=null", "--steps=4"]);
    expect([more.code, more.err]).toEqual([0, ""]);
    expect(existsSync(join(run, "step-4"))).toBe(true);
  });

  it("is refused where nothing is held out", async () => {
    const run = join(folder, "none");
    const { code, err } = await terse(
      train("--steps=4", "--stop.patience=2", "--data.validationFraction=0", "--out", run),
    );
    expect([code, existsSync(run)]).toEqual([1, false]);
    expect(err).toMatch(/^error: stop looks at the loss of held-out data, and nothing is held out/);
  });
});
