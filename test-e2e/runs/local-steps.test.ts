/** Runs with local steps: resumed at any step, begun from other runs and given back to them, interrupted, refused. */
import { cpSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { collectives } from "@terse/native-collectives";
import { beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../ranks/start-ranks.ts";
import { type Outcome, terseIn, tinyTraining, trainingFolder } from "./terse.ts";

const { folder, text } = trainingFolder("local-steps");
const terse = (...args: [args: readonly string[], during?: (line: string, pid: number) => void]) =>
  terseIn(folder, ...args);
const muon = "--optimizer.groups=[{ roles: [embedding, head, norm, vector], name: adamw }]";
const own = ["--optimizer.name=muon", "--optimizer.lr=0.01", muon, "--sample.bytes=0"];
const codec = ["--exchange.gradient.name=codec", "--exchange.gradient.codec=scaled-sign"];
const kept = ["--local.alpha=0.25", "--local.rebase=true"];
const rounds = ["--local.syncEvery=6", "--local.fragments=2", "--local.delay=1", ...kept, ...codec];
const train = (...args: string[]) => [...tinyTraining(text), ...own, ...args];
const run = join(folder, "run");

const lines = (of: string): Record<string, number>[] =>
  readFileSync(join(of, "metrics.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, number>);
const filesOf = (of: string, step: number) =>
  readdirSync(join(of, `step-${step}`))
    .filter((name) => name.endsWith(".safetensors"))
    .map((name) => [name, readFileSync(join(of, `step-${step}`, name)).toString("base64")]);

describe("a run with local steps", () => {
  let whole: Outcome;
  beforeAll(async () => {
    const saves = ["--save.every=1", "--save.keep=20", "--evaluate.every=4"];
    whole = await terse(train("--steps=18", ...rounds, ...saves, "--out", run));
  });

  it("says what crosses the network and when, and whose the losses are", () => {
    expect([whole.code, whole.err]).toEqual([0, ""]);
    expect(whole.out).toMatch(
      /^optimizer muon and adamw, every 6 steps sgd, codec: each rank sends .* in a round, every 3 steps \(/m,
    );
    expect(whole.out).toMatch(
      /^local steps: one of 2 fragments is shared every 3 steps; a round travels beside a step, which goes on top of what it brings, and a rank keeps 0\.25 of its own work; the loss is that of the ranks' own models, validation that of the shared one$/m,
    );
    const logged = lines(run).filter((line) => "local/rounds" in line);
    expect(logged.map(({ step }) => step)).toEqual([2, 5, 8, 11, 14, 17]); // where rounds are used
    for (const line of logged) {
      expect(line["local/loss_step"]).toBe(line["step"]! - 1); // the delay
      expect(line["local/drift"]).toBeGreaterThan(0);
      expect(line["local/round_bytes"]).toBeGreaterThan(0);
      expect(line["sent_bytes"]).toBeCloseTo(line["local/round_bytes"]! / 3, 6);
    }
  });

  it("goes on from a save with the same bits, also while a round is under way", async () => {
    // Before the first round, and while that of either fragment is under way; optimizers/src/local goes on from every
    // step.
    for (const step of [2, 3, 6]) {
      const copy = join(folder, `from-${step}`);
      cpSync(run, copy, { recursive: true });
      for (let later = step + 1; later <= 18; later++) rmSync(join(copy, `step-${later}`), { recursive: true });
      const { code, err } = await terse(["train", "--resume", copy, "--save.every=0"]);
      expect([code, err]).toEqual([0, ""]);
      expect(filesOf(copy, 18)).toEqual(filesOf(run, 18));
      const [usedAt, leftAt] = [Math.ceil((step + 1) / 3) * 3 - 1, Math.ceil((step + 1) / 3) * 3 - 2];
      const used = lines(copy).find((line) => line["step"] === usedAt && "train/loss" in line)!;
      expect(used["local/loss_step"]).toBe(leftAt < step ? usedAt : leftAt);
      expect(used["local/drift"]).toBeGreaterThan(0);
      rmSync(copy, { recursive: true });
    }
  });

  it("goes on with another number of ranks, which end with the same parameters", async () => {
    const copy = join(folder, "three");
    cpSync(run, copy, { recursive: true });
    const more = ["--steps=24", "--nproc-per-node=3", "--compareEvery=6"];
    const { code, err, out } = await terse(["train", "--resume", copy, ...more]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/^saved by 2 ranks, goes on with 3/m);
  });

  it("goes on without local steps, and with them again", async () => {
    const copy = join(folder, "without");
    cpSync(run, copy, { recursive: true });
    const without = await terse(["train", "--resume", copy, "--steps=20", "--local=null"]);
    expect([without.code, without.err]).toEqual([0, ""]);
    expect(without.out).toMatch(/^local steps end: all ranks go on from the shared model.*; codec begins anew, and/m);
    const loss = (of: Outcome) => /validation_loss: ([\d.]+)/g.exec(of.out)![1];
    expect(loss(without)).toBe([...whole.out.matchAll(/validation_loss: ([\d.]+)/g)].at(-1)![1]);
    const again = await terse(["train", "--resume", copy, "--steps=24", "--local.syncEvery=4", "--compareEvery=1"]);
    expect([again.code, again.err]).toEqual([0, ""]);
    expect(again.out).toMatch(/^local steps begin: every rank goes on by itself from the model.*; codec begins anew/m);
  });

  it("ends with the same bits over gloo as over tcp", async (context) => {
    if (!collectives().hasGloo) return context.skip("the build found no Gloo");
    const out = join(folder, "gloo");
    const saves = ["--save.every=0", "--evaluate.every=4"];
    const gloo = await terseIn(folder, train("--steps=18", ...rounds, ...saves, "--out", out), undefined, {
      TERSE_ENGINE: "gloo",
    });
    expect([gloo.code, gloo.err]).toEqual([0, ""]);
    expect(gloo.out).toMatch(/2 ranks over gloo/);
    expect(filesOf(out, 18)).toEqual(filesOf(run, 18));
  });

  it("ends with a round after any number of steps, and goes on from there", async () => {
    const out = join(folder, "short");
    const short = ["--local.syncEvery=5", "--compareEvery=1", "--evaluate.every=3", ...codec];
    const first = await terse(train("--steps=7", ...short, "--out", out));
    expect([first.code, first.err]).toEqual([0, ""]);
    const steps = () => lines(out).flatMap((line) => ("local/rounds" in line ? [line["step"]] : []));
    expect(steps()).toEqual([4, 6]);
    const { code, err } = await terse(["train", "--resume", out, "--steps=11"]);
    expect([code, err]).toEqual([0, ""]);
    expect(steps()).toEqual([4, 6, 9, 10]);
  });

  it("says in every line what each rank did by itself and how long it waited, also where each step has a round", async () => {
    const out = join(folder, "every-step");
    const { code, err } = await terse(train("--steps=6", "--local.syncEvery=1", "--logEvery=1", "--out", out));
    expect([code, err]).toEqual([0, ""]);
    const logged = lines(out).filter((line) => "local/rounds" in line);
    expect(logged).toHaveLength(6);
    for (const [i, line] of logged.entries()) {
      const of = (key: string) => line[key] as unknown as number[];
      for (const seconds of of("ranks/compute_seconds")) expect(seconds).toBeGreaterThan(0);
      if (i > 0) for (const seconds of of("ranks/exposed_seconds")) expect(seconds).toBeGreaterThan(0);
    }
  });

  it("keeps its fragments", async () => {
    const { code, err } = await terse(["train", "--resume", run, "--steps=24", "--local.fragments=3"]);
    expect(code).toBe(1);
    expect(err).toMatch(/^error: local\.fragments: 3, and the save has 2: a resumed run keeps it; take 2 again/);
  });
});

describe("a run with local steps within hosts", () => {
  const hosts = ["--local.within=host", "--local.ranksPerHost=2", "--compareEvery=1"];
  const out = join(folder, "hosts");

  it("goes on from a save with the same bits, on other hosts, and with each rank alone", async () => {
    const saves = ["--save.every=4", "--save.keep=20", "--nproc-per-node=4"];
    const whole = await terse(train("--steps=12", ...rounds, ...hosts, ...saves, "--out", out));
    expect([whole.code, whole.err]).toEqual([0, ""]);
    expect(whole.out).toMatch(/each rank sends .* a step on its host, and .* in a round, every 3 steps \(/);
    expect(whole.out).toMatch(/^local steps, in which the ranks of a host go together: one of 2 fragments/m);
    const copy = join(folder, "hosts-from-8");
    cpSync(out, copy, { recursive: true });
    rmSync(join(copy, "step-12"), { recursive: true });
    const again = await terse(["train", "--resume", copy, "--nproc-per-node=4"]);
    expect([again.code, again.err]).toEqual([0, ""]);
    expect(filesOf(copy, 12)).toEqual(filesOf(out, 12));
    const singly = ["--local.ranksPerHost=1", "--nproc-per-node=4", "--steps=18"];
    const other = await terse(["train", "--resume", out, ...singly]);
    expect([other.code, other.err]).toEqual([0, ""]);
    expect(other.out).toMatch(/^where other ranks step together than before, each/m);
    const alone = ["--local.within=rank", "--local.ranksPerHost=null", "--nproc-per-node=3", "--steps=18"];
    const { code, err } = await terse(["train", "--resume", copy, ...alone]);
    expect([code, err]).toEqual([0, ""]);
  });

  it("counts and measures the votes of the ranks that vote, the first ones of the hosts", async () => {
    const out = join(folder, "hosts-vote");
    const votes = ["--local.optimizer.name=lion-cub", "--local.optimizer.lr=0.001", "--exchange.vote=count"];
    const steps = ["--steps=4", "--local.syncEvery=2", "--measureEvery=1"];
    const args = [...steps, ...hosts, ...votes, "--nproc-per-node=3", "--out", out];
    const { code, err } = await terse(train(...args));
    expect([code, err]).toEqual([0, ""]);
    const measured = lines(out).filter((line) => "votes/elements" in line);
    expect(measured.map(({ step }) => step)).toEqual([1, 3]);
    for (const line of measured) expect(line["votes/chance_ties"]).toBe(0.5); // of two hosts
  });
});

describe("a run with local steps that is asked to end", () => {
  it("ends after the same step on all ranks, and goes on from there", async () => {
    const out = join(folder, "stopped");
    let asked = false;
    const stopped = await terse(train("--steps=60000", ...rounds, "--save.every=0", "--out", out), (line, pid) => {
      if (asked || !/step: \d+\//.test(line)) return;
      asked = true;
      process.kill(pid, "SIGTERM");
    });
    expect(stopped.code).toBe(143);
    expect(stopped.out).toMatch(
      /^SIGTERM: saves with one of the next rounds, or within about 10 s of steps, and ends/m,
    );
    const [step] = readdirSync(out).flatMap((name) => /^step-(\d+)$/.exec(name)?.[1] ?? []);
    const { code, err } = await terse(["train", "--resume", out, `--steps=${6 * Math.ceil(Number(step) / 6) + 6}`]);
    expect([code, err]).toEqual([0, ""]);
  });

  it("ends in the middle of a round that is too long to wait for, and goes on from there", async () => {
    const out = join(folder, "stopped-in-round");
    const long = ["--steps=600000", "--local.syncEvery=600000", "--save.every=0", "--evaluate.every=0"];
    const stopped = await terse(train(...long, "--out", out), (line, pid) => {
      if (line.includes("validation_loss")) process.kill(pid, "SIGTERM"); // before the first step
    });
    expect(stopped.code).toBe(143);
    const [step] = readdirSync(out).flatMap((name) => /^step-(\d+)$/.exec(name)?.[1] ?? []);
    expect(Number(step)).toBeGreaterThan(0);
    const ended = await terse(["train", "--resume", out, `--steps=${step}`]);
    expect([ended.code, ended.err]).toEqual([0, ""]);
    expect(ended.out).toMatch(/^no step is left: the run ends between two rounds, .* give more --steps to share it/m);
    const { code, err } = await terse(["train", "--resume", out, `--steps=${Number(step) + 3}`]);
    expect([code, err]).toEqual([0, ""]);
  });
});

it("a run whose ranks are shared out to other hosts says so, and goes on with local.ranksPerHost", async () => {
  const out = join(folder, "other-hosts");
  const given = ["--local.within=host", "--local.syncEvery=2", "--steps=2", "--nproc-per-node=2"];
  expect((await terse(train(...given, "--out", out))).code).toBe(0);
  const endpoint = `--rdzv-endpoint=127.0.0.1:${await freePort()}`;
  const onTwo = (...args: readonly string[]) =>
    Promise.all(
      [0, 1].map((machine) => {
        const place = ["--nnodes=2", `--node-rank=${machine}`, endpoint, "--nproc-per-node=1"];
        const env = { TERSE_TOKEN: "t" };
        return terseIn(folder, ["train", "--resume", out, "--steps=4", ...place, ...args], () => {}, env);
      }),
    );
  for (const { code, err } of await onTwo()) {
    expect(code).toBe(1);
    expect(err).toMatch(
      /Cannot resume from \S+: this rank was one of the 2 of host 0, of 1, and now it is one of the 1 of host [01], of 2: start as many ranks on each host as before, or say in local\.ranksPerHost how many there are now/,
    );
  }
  for (const { code, err } of await onTwo("--local.ranksPerHost=1")) expect([code, err]).toEqual([0, ""]);
});

describe("a rank whose loss is not finite", () => {
  it("ends the run in the next round, on all ranks", async () => {
    const { code, err } = await terse(train("--steps=60", ...rounds, "--optimizer.lr=1e38", "--schedule.warmup=0"));
    expect(code).toBe(1);
    expect(err).toMatch(/refuses the step: the (loss|gradient) is not finite/);
  });
});
