/**
 * docs/launching/train.sbatch in a Slurm of one node: what it does when its job gets the signal of a preemption or of
 * the time limit.
 */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeFlags } from "../../tools/programs.ts";
import { type Slurm, slurmObstacle, startSlurm } from "../ranks/slurm.ts";
import { main, tinyTraining, trainingFolder, until } from "./terse.ts";

const { folder, text } = trainingFolder("requeue");
const script = readFileSync(new URL("../../docs/launching/train.sbatch", import.meta.url), "utf8");

/** Every 20 steps a save. */
const training = [
  ...[process.execPath, ...nodeFlags, main, ...tinyTraining(text), "--steps=1000000"],
  ...["--save.every=20", "--logEvery=20", "--evaluate.every=1000000", "--sample.bytes=0"],
];
const own = "srun ./terse train gpt-small ";

const obstacle = slurmObstacle();
describe.skipIf(obstacle !== undefined)(`train.sbatch${obstacle ? ` (skipped: ${obstacle})` : ""}`, () => {
  let slurm: Slurm | undefined;
  let refusal = ""; // why Slurm does not start on this machine
  beforeAll(async () => {
    slurm = await startSlurm().catch((error: Error) => {
      refusal = error.message;
      return undefined;
    });
  });
  afterAll(() => slurm?.[Symbol.asyncDispose]());

  it("saves at SIGTERM, is requeued, and goes on from its save until it is cancelled; then any number of ranks goes on", async (context) => {
    if (!slurm) return context.skip(refusal);
    const { env, command } = slurm;
    const ask = (name: string, ...words: string[]) => {
      const [file, ...args] = command(name, ...words);
      const options = { cwd: folder, env: { ...process.env, ...env }, encoding: "utf8" } as const;
      const { status, stdout, stderr } = spawnSync(file!, args, options);
      expect(status, `${name} ${words.join(" ")}: ${stderr}`).toBe(0);
      return stdout;
    };
    expect(script).toContain(own);
    writeFileSync(join(folder, "train.sbatch"), script.replace(own, `srun ${training.join(" ")} `));
    const sizes = ["--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=1"];
    const job = /\d+/.exec(ask("sbatch", "--output=output.txt", ...sizes, "train.sbatch"))![0];
    const is = (state: string) => ask("scontrol", "show", "job", job).includes(state);
    const run = `runs/job-${job}`;
    const newest = () =>
      Math.max(0, ...globSync("step-*", { cwd: join(folder, run) }).map((name) => Number(name.slice(5))));

    /** Shows what the job is at, if it does not come so far. */
    const seen = (what: string, holds: () => boolean) =>
      until(holds).catch((cause: Error) => {
        const output = readFileSync(join(folder, "output.txt"), "utf8");
        throw new Error(`${what}: ${ask("scontrol", "show", "job", job)}\n${ask("sinfo")}\n${output}`, { cause });
      });

    await seen("no save", () => newest() > 0);
    ask("scancel", "--signal=TERM", job); // to the ranks alone, as by --signal=TERM@180
    // Started again before the node has put its first script away, the job would end at once.
    const isIdle = () => ask("sinfo", "--noheader", "--format=%t").trim() === "idle";
    await seen("not requeued", () => is("JobState=PENDING") && isIdle());
    // A node withdraws a job's credential with the second of that time as its date, and refuses one that is not
    // younger: a job that is started again in that second fails at once. Slurm's own two minutes avoid that.
    await setTimeout(2000);
    const saved = newest();
    ask("scontrol", "update", `JobId=${job}`, "StartTime=now"); // Slurm would wait for two minutes
    await seen("it does not go on", () => newest() > saved);
    expect(is("Restarts=1")).toBe(true);
    ask("scancel", job);
    await seen("not cancelled", () => is("JobState=CANCELLED"));
    const output = readFileSync(join(folder, "output.txt"), "utf8");
    const first = `SIGTERM: ends after ${saved} steps.*with exit code 143`;
    expect(output).toMatch(new RegExp(`${first}.*; 2 ranks over tcp.*^step: ${saved}  validation_loss`, "ms"));

    const more = ["--resume=auto", `--out=${run}`, `--steps=${newest() + 2}`];
    ask("srun", "-n", "3", "--overcommit", "--output=three.txt", ...training, ...more);
    expect(readFileSync(join(folder, "three.txt"), "utf8")).toContain("saved by 2 ranks, goes on with 3");
  });
});
