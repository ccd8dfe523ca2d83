/** Runs on hosts with a disk each: network namespaces, which only root can make. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { netlabObstacle } from "../../tools/netlab/netlab.ts";
import { nodeFlags } from "../../tools/programs.ts";
import { lastLine, main, outcomeOf, terseIn, tinyTraining, trainingFolder } from "./terse.ts";

const { folder, text } = trainingFolder("hosts");
const train = (...args: string[]) => [...tinyTraining(text), "--sample.bytes=0", ...args];
const weights = (run: string, step: number) => readFileSync(join(run, `step-${step}`, "model.safetensors"));
const obstacle = netlabObstacle();

describe.skipIf(obstacle)(`hosts that see different folders${obstacle ? ` (skipped: ${obstacle})` : ""}`, () => {
  const run = join(folder, "hosts");
  const disksOf = (path: string) => [0, 1].map((host) => `${path}-of-host-${host}`);
  const disks = disksOf(run);
  /** Each host mounts its own disk at the run's path; `order` gives a host the disk of another one. */
  const onHosts = (args: readonly string[], { order = "$RANK", path = run } = {}) => {
    for (const folder of [path, ...disksOf(path)]) mkdirSync(folder, { recursive: true });
    const script = `hostname host-$RANK; mount --bind ${path}-of-host-${order} ${path}; exec "$@"`;
    const netlab = join(import.meta.dirname, "../../tools/netlab/main.ts");
    const command = ["unshare", "--uts", "sh", "-ec", script, "sh", process.execPath, ...nodeFlags, main, ...args];
    return outcomeOf([process.execPath, netlab, "--hosts", "2", "--rate", "1gbit", "--", ...command], folder);
  };
  const files = (host: number, step: number) => readdirSync(join(disks[host]!, `step-${step}`)).sort();

  it("each keep what their ranks wrote, and go on from it together, also after they have changed places", async () => {
    const given = ["--optimizer.name=adamw", "--schedule.name=constant", "--schedule.warmup=0"];
    const begun = await onHosts(train("--steps=2", ...given, "--out", run));
    expect(begun.code, begun.err).toBe(0);
    expect(files(0, 2)).toEqual(["config.json", "manifest.json", "model.safetensors", "state-rank-0.safetensors"]);
    expect(files(1, 2)).toEqual(["state-rank-1.safetensors"]);
    expect(readdirSync(disks[1]!)).toEqual(["step-2"]);

    const resumed = await onHosts(["train", "--resume", run, "--steps=4"]);
    expect(resumed.code, resumed.err).toBe(0);
    expect(lastLine(resumed.out)).toBe("resume: ./terse train --resume hosts --steps=8");

    const exchanged = await onHosts(["train", "--resume", run, "--steps=6"], { order: "$((1 - RANK))" });
    expect(exchanged.code, exchanged.err).toBe(0);
    expect(files(1, 6)).toEqual(["config.json", "manifest.json", "model.safetensors", "state-rank-0.safetensors"]);
    const whole = join(folder, "one-disk");
    await terseIn(folder, train("--steps=6", ...given, "--out", whole));
    expect(weights(disks[1]!, 6).equals(weights(whole, 6))).toBe(true);

    rmSync(join(disks[0]!, "step-6"), { recursive: true });
    const without = await onHosts(["train", "--resume", run, "--steps=8"], { order: "$((1 - RANK))" });
    expect(without.code).not.toBe(0);
    expect(without.err).toMatch(
      /^error: \S+state-rank-1\.safetensors, which rank 1 wrote on host-1: no rank's disk has it/m,
    );
  });

  it("begin no run where another machine's disk has one, whose saves it would remove", async () => {
    const path = join(folder, "taken");
    const [first, second] = disksOf(path) as [string, string];
    await terseIn(folder, train("--steps=1", "--nproc-per-node=1", "--out", second));
    const before = readdirSync(second);
    const given = train("--steps=2", "--save.every=1", "--save.keep=1", "--schedule.warmup=0", "--out", path);
    const begun = await onHosts(given, { path });
    expect(begun.code).toBe(1);
    expect(begun.err).toMatch(
      /^error: on host-1: \S+taken is not empty, and a run needs its own folder on every machine: choose/m,
    );
    expect([readdirSync(first), readdirSync(second)]).toEqual([[], before]);

    // Of a run whose rank 0 had the first disk, which is away now.
    for (const name of before) rmSync(join(second, name), { recursive: true });
    mkdirSync(join(second, "step-1"));
    writeFileSync(join(second, "step-1", "state-rank-1.safetensors"), "");
    const goesOn = await onHosts([...given, "--resume=auto"], { path });
    expect(goesOn.code).toBe(1);
    const part =
      /^error: on host-1: \S+taken has only what this machine's ranks wrote of step-1: weights and manifest are on the machine where rank 0 was; take part on that machine, or copy them/m;
    expect(goesOn.err).toMatch(part);
    expect((await onHosts(["train", "--resume", path], { path })).err).toMatch(part);
    expect([readdirSync(first), readdirSync(second)]).toEqual([[], ["step-1"]]);

    // Of this run, which ended while it wrote its first save.
    writeFileSync(join(first, "recipe.json"), "{}");
    const anew = await onHosts([...given, "--resume=auto"], { path });
    expect(anew.code, anew.err).toBe(0);
    expect(readdirSync(second)).toEqual(["step-2"]);
  });

  it("get each other's states where other ranks step together in local steps", async () => {
    const local = join(folder, "local");
    const given = ["--optimizer.name=adamw", "--schedule.warmup=0", "--local.syncEvery=2", "--steps=2"];
    const begun = await onHosts(train(...given, "--out", local), { path: local });
    expect(begun.code, begun.err).toBe(0);
    const together = ["--local.within=host", "--local.ranksPerHost=2", "--steps=4"];
    const resumed = await onHosts(["train", "--resume", local, ...together], { path: local });
    expect(resumed.code, resumed.err).toBe(0);
  });
});
