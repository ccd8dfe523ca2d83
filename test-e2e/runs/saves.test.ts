/** Runs that are interrupted, and resumed. */
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { nodeFlags } from "../../tools/programs.ts";
import { lastLine, main, type Outcome, outcomeOf, rankOf, terseIn, tinyTraining, trainingFolder } from "./terse.ts";

const { folder, text } = trainingFolder("saves");
const terse = (...args: [args: readonly string[], during?: (line: string, pid: number) => void]) =>
  terseIn(folder, ...args);
const train = (...args: string[]) => [...tinyTraining(text), "--sample.bytes=0", ...args];
const weights = (run: string, step: number) => readFileSync(join(run, `step-${step}`, "model.safetensors"));
const validationLosses = ({ out }: Outcome) =>
  [...out.matchAll(/validation_loss: ([\d.]+)/g)].map((match) => Number(match[1]));

describe("a run", () => {
  const run = join(folder, "run");
  let first: Outcome;
  beforeAll(async () => {
    first = await terse(train("--steps=6", "--evaluate.every=2", "--optimizer.name=adamw", "--out", run));
  });

  it("is saved at every evaluation, keeps its last two saves, and ends with the command that goes on", () => {
    expect([first.code, first.err]).toEqual([0, ""]);
    expect(readdirSync(run).sort()).toEqual(["metrics.jsonl", "recipe.json", "step-4", "step-6"]);
    expect(lastLine(first.out)).toBe("resume: ./terse train --resume run --steps=12");
  });

  it("does not go back: nothing of it changes", async () => {
    const read = () =>
      readdirSync(run, { recursive: true, withFileTypes: true }).map(({ parentPath, name, isFile }) => [
        parentPath,
        name,
        isFile,
      ]);
    const before = [read(), weights(run, 6), readFileSync(join(run, "metrics.jsonl"), "utf8")];
    const { code, err } = await terse(["train", "--resume", run, "--steps=4"]);
    expect(code).toBe(1);
    expect(err).toBe(
      `error: steps: ${run} is saved after step 6, and a run does not go back: give --steps=6 or more, or start a new run\n`,
    );
    expect([read(), weights(run, 6), readFileSync(join(run, "metrics.jsonl"), "utf8")]).toEqual(before);
  });

  it("goes on with another number of ranks at the same rows of the data, and remembers what was overridden", async () => {
    const [one, two] = ["one", "two"].map((name) => join(folder, name)) as [string, string];
    for (const copy of [one, two]) cpSync(run, copy, { recursive: true });
    const more = ["--steps=12", "--compareEvery=1"];
    const same = await terse(["train", "--resume", two, ...more]);
    const fewer = await terse(["train", "--resume", one, ...more, "--accumulate=2", "--nproc-per-node=1"]);
    expect([same.code, fewer.code], same.err + fewer.err).toEqual([0, 0]);
    expect(fewer.out).toMatch(/^steps: 6 → 12$/m);
    expect(fewer.out).toMatch(/^saved by 2 ranks, goes on with 1: 8 rows a step as before$/m);
    expect(validationLosses(fewer)).toHaveLength(4); // after 6, 8, 10 and 12 steps
    for (const [i, loss] of validationLosses(fewer).entries()) expect(loss).toBeCloseTo(validationLosses(same)[i]!, 3);
    expect(JSON.parse(readFileSync(join(one, "recipe.json"), "utf8"))).toMatchObject({ steps: 12, accumulate: 2 });
  });

  it("gives its weights to a new run", async () => {
    const out = join(folder, "begun-with-weights");
    const { code, err, out: said } = await terse(train("--steps=1", "--init-from", run, "--out", out));
    expect(code, err).toBe(0);
    expect(said).toContain(`the weights are those of ${run}`);
    expect(/validation_loss: ([\d.]+)/.exec(said)![1]).toBe(validationLosses(first).at(-1)!.toFixed(4));
  });

  it("that fine-tunes goes on by the same command again, and from its last save where a rank fails", async () => {
    const out = join(folder, "tuned");
    const command = (...args: string[]) => [
      ...["train", "--recipe=fine-tune", "--data", text, "--evaluate.windows=2", "--logEvery=1", "--sample.bytes=0"],
      ...["--init-from", run, "--out", out, "--resume=auto", ...args],
    ];
    const one = await terse(command("--steps=2"));
    expect([one.code, one.err]).toEqual([0, ""]);
    expect(one.out).toContain(`the weights are those of ${run}`);
    const dry = await terse(command("--steps=4", "--dry-run"));
    expect([dry.code, dry.err]).toEqual([0, ""]);
    let killed = false;
    const again = await terse(command("--steps=40", "--save.every=2", "--max-restarts=1"), (_, pid) => {
      if (killed || !existsSync(join(out, "step-4"))) return;
      const rank = rankOf(pid, 1);
      if (rank !== undefined) process.kill(rank, "SIGKILL");
      killed = true;
    });
    expect(again.err).toMatch(/^restart 1 of 1, from the last save in .*tuned$/m);
    expect(again.code).toBe(0);
    expect(again.out).toMatch(/^steps: 2 → 40$/m);
    const bare = await terse(["train", "fine-tune", "--data", text, "--out", out, "--resume=auto", "--steps=42"]);
    expect([bare.code, bare.err]).toEqual([0, ""]);
  });

  it("is used by one process at a time", async () => {
    let second: Promise<Outcome> | undefined;
    const out = join(folder, "in-use");
    const { code } = await terse(train("--steps=100000", "--evaluate.every=2", "--out", out), (line, pid) => {
      if (!/step: ([68]|1\d)\//.test(line) || second) return; // the save of step 4 has waited for that of step 2
      second = terse(["train", "--resume", out]);
      void second.then(() => process.kill(pid, "SIGTERM"));
    });
    expect(code).toBe(143);
    expect((await second!).err).toMatch(/^error: .*in-use is in use: process \d+ on .* writes to it/m);
    expect(existsSync(join(out, "lock.json"))).toBe(false);
  });
});

describe("a run that is killed while it saves after every step", () => {
  it("has a complete save each time, and goes on from it", async () => {
    const out = join(folder, "killed");
    const given = ["--save.every=1", "--evaluate.every=0", "--nproc-per-node=1"];
    const savedSteps = () => readdirSync(out).flatMap((name) => Number(/^step-(\d+)$/.exec(name)?.[1] ?? 0));
    let before = 0;
    for (const [start, lines] of [
      [train("--steps=100000", ...given, "--out", out), 3],
      [["train", "--resume", out], 2],
    ] as const) {
      let [seen, killed] = [0, false];
      const { code } = await terse(start, (line, pid) => {
        // A save is written while the next steps run, and the first one may take longer than they do.
        if (killed || !/^step: \d+\//.test(line) || ++seen < lines || savedSteps().every((step) => step === 0)) return;
        killed = true;
        process.kill(pid, "SIGKILL");
      });
      expect(code).not.toBe(0);
      expect(Math.max(...savedSteps())).toBeGreaterThanOrEqual(before);
      before = Math.max(...savedSteps());
    }
    const steps = before + 2;
    const resumed = await terse(["train", "--resume", out, `--steps=${steps}`]);
    expect(resumed.code, resumed.err).toBe(0);
    expect(readdirSync(out).sort()).toEqual(["metrics.jsonl", "recipe.json", `step-${steps - 1}`, `step-${steps}`]);
  });
});

describe("an interrupted run", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("saves after the step at %s, and resumes where it stopped", async (signal, exit) => {
    const out = join(folder, signal);
    let sent = false;
    const given = ["--steps=100000", "--evaluate.every=0", "--out", out];
    const stopped = await terse(train(...given), (line, pid) => {
      if (sent || !/step: 3\//.test(line)) return;
      sent = true;
      process.kill(pid, signal);
    });
    expect(stopped.code).toBe(exit);
    expect(stopped.out).toContain(`${signal}: saves after this step and ends; a second signal ends at once`);
    expect(stopped.err).toBe(`resume: ./terse train --resume ${signal}\n`);
    const [step] = readdirSync(out).flatMap((name) => /^step-(\d+)$/.exec(name)?.[1] ?? []);
    const resumed = await terse(["train", "--resume", out, `--steps=${Number(step) + 1}`]);
    expect(resumed.code, resumed.err).toBe(0);
    expect(resumed.out).toContain(`step: ${Number(step) + 1}/${Number(step) + 1}`);
  });

  it("whose output nobody reads any more saves and ends, without a stack", async () => {
    const command = [process.execPath, ...nodeFlags, main, ...train("--steps=100000", "--out", "unread")];
    const quoted = command.map((word) => `'${word}'`).join(" ");
    const { out, err } = await outcomeOf(["bash", "-c", `${quoted} | head -12; echo "\${PIPESTATUS[0]}"`], folder);
    expect(lastLine(out)).toBe("141");
    expect(err).toBe("resume: ./terse train --resume unread\n");
    expect(existsSync(join(folder, "unread", "lock.json"))).toBe(false);
  });

  it("does not go on from a save that is damaged: the error names the file", async () => {
    const out = join(folder, "damaged");
    await terse(train("--steps=2", "--out", out, "--nproc-per-node=1"));
    const path = join(out, "step-2", "state-rank-0.safetensors");
    const content = readFileSync(path);
    content[content.length - 100]! ^= 16;
    writeFileSync(path, content);
    const { code, err } = await terse(["train", "--resume", out, "--steps=4", "--nproc-per-node=1"]);
    expect(code).toBe(1);
    expect(err).toMatch(
      /^error: .*state-rank-0\.safetensors is not what was saved: its checksum is .*use an earlier save\.$/m,
    );
  });
});
