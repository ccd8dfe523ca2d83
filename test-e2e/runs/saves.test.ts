/** Runs that are interrupted, resumed, or short of disk space. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { netlabObstacle } from "../../tools/netlab/netlab.ts";
import { nodeFlags } from "../../tools/programs.ts";
import { main, type Outcome, outcomeOf, rankOf, terseIn, tinyTraining, trainingFolder } from "./terse.ts";

const { folder, text } = trainingFolder("saves");
const terse = (...args: [args: readonly string[], during?: (line: string, pid: number) => void]) =>
  terseIn(folder, ...args);
const train = (...args: string[]) => [...tinyTraining(text), "--sample.bytes=0", ...args];
const weights = (run: string, step: number) => readFileSync(join(run, `step-${step}`, "model.safetensors"));
const lastLine = (printed: string) => printed.trimEnd().split("\n").at(-1);
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

const canMount = spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "none", "/tmp"]).status === 0;

describe.skipIf(!canMount)("a disk that is full (skipped without the right to mount)", () => {
  /**
   * Trains on a disk of some megabytes in a mount namespace; `during` gets the disk's path, as this process sees it.
   */
  const trainOnDisk = (megabytes: number, args: string[], during: (line: string, disk: string) => void) => {
    const disk = join(folder, `disk-${megabytes}`);
    mkdirSync(disk, { recursive: true });
    const script = `mount -t tmpfs -o size=${megabytes}m none ${disk}; exec "$@"`;
    const command = [process.execPath, ...nodeFlags, main, ...train(...args, "--out", join(disk, "run"))];
    const all = ["unshare", "-rm", "sh", "-ec", script, "sh", ...command];
    return outcomeOf(all, folder, (line, pid) => during(line, `/proc/${pid}/root${disk}`));
  };

  it("is found before the first step", async () => {
    const { code, out, err } = await trainOnDisk(3, ["--steps=2"], () => {});
    expect(code).toBe(1);
    expect(err).toMatch(/^error: the disk of .*run has \S+ MB for saves, and they will take \S+ MB \(save\.keep: 2/m);
    expect(out).not.toContain("step:");
  });

  it("does not end the run: it goes on, tries again, and is complete when there is space", async () => {
    let names: string[] = [];
    let filled = false;
    const given = ["--steps=200", "--save.every=50", "--save.keep=1", "--evaluate.every=0"];
    const { code, out, err } = await trainOnDisk(8, given, (line, disk) => {
      if (!filled && existsSync(join(disk, "run", "step-50"))) {
        filled = true;
        try {
          writeFileSync(join(disk, "full"), new Uint8Array(8 << 20));
        } catch {
          // it is full now
        }
      }
      if (!/^step 200 could not be saved: .*; tries again in/.test(line)) return;
      names = readdirSync(join(disk, "run"));
      rmSync(join(disk, "full"), { force: true });
    });
    expect(code, err).toBe(0);
    expect(out).toMatch(
      /^step 1[05]0 could not be saved: .*\.step-1[05]0\.tmp.*no space is left.*; the run goes on, and tries again at the next save$/m,
    );
    expect(names.filter((name) => name.endsWith(".tmp"))).toEqual([]);
    expect(names.some((name) => /^step-(50|100|150)$/.test(name))).toBe(true);
    expect(lastLine(out)).toMatch(/^resume: .*run --steps=400$/);
  });
});

describe.skipIf(!canMount)("a disk that is read-only for a while (skipped without the right to mount)", () => {
  it("loses no line and no run: what could not be written is said, and written later", async () => {
    const disk = join(folder, "read-only");
    mkdirSync(disk);
    const given = ["--steps=100000", "--save.every=25", "--logEvery=1", "--evaluate.every=0", "--tensorboard"];
    const command = [process.execPath, ...nodeFlags, main, ...train(...given, "--out", `${disk}/run`)];
    const script = `mount -t tmpfs none ${disk}; exec "$@"`;
    let [state, last, until] = ["written", 0, 0];
    const all = ["unshare", "-rm", "sh", "-ec", script, "sh", ...command];
    const { code, out, err } = await outcomeOf(all, folder, (line, pid) => {
      last = Number(/^step: (\d+)\//.exec(line)?.[1] ?? last);
      const remount = (how: string) =>
        spawnSync("nsenter", [
          ...["--preserve-credentials", `--target=${pid}`, "--user", "--mount"],
          ...["mount", "-o", `remount,${how}`, disk],
        ]).status === 0; // busy while a file is open for writing
      if (state === "written" && last > 30 && remount("ro")) [state, until] = ["read-only", Date.now() + 2000];
      else if (state === "read-only" && Date.now() > until && / could not be saved/.test(line) && remount("rw"))
        [state, until] = ["written again", last + 30];
      else if (state === "written again" && last > until) {
        state = "ended";
        process.kill(pid, "SIGTERM");
      }
      if (state === "ended") cpSync(`/proc/${pid}/root${disk}/run/metrics.jsonl`, join(folder, "metrics.jsonl"));
    });
    expect(code, err).toBe(143);
    expect(out.match(/metrics\.jsonl cannot be written: its disk is read-only/g)).toHaveLength(1);
    expect(out.match(/metrics\.jsonl is written again and lacks nothing/g)).toHaveLength(1);
    expect(out).toMatch(/tfevents\S+ cannot be written: its disk is read-only/);
    expect(out).toMatch(
      /^step \d+ could not be saved: .*its disk is read-only.*; the run goes on, and tries again at the next save$/m,
    );
    expect(err).toMatch(/^resume: /);
    const logged = readFileSync(join(folder, "metrics.jsonl"), "utf8").trimEnd().split("\n");
    const steps = logged.flatMap((line) => {
      const { step, "train/loss": loss } = JSON.parse(line) as { step: number; "train/loss"?: number };
      return loss === undefined ? [] : [step];
    });
    expect(steps).toEqual(steps.map((_, i) => i));
  });
});

const obstacle = netlabObstacle();

describe.skipIf(obstacle)(`hosts that see different folders${obstacle ? ` (skipped: ${obstacle})` : ""}`, () => {
  const run = join(folder, "hosts");
  const disks = [0, 1].map((host) => join(folder, `disk-of-host-${host}`));
  /** Each host mounts its own disk at the run's path; `order` gives a host the disk of another one. */
  const onHosts = (args: readonly string[], order = "$RANK") => {
    for (const path of [run, ...disks]) mkdirSync(path, { recursive: true });
    const script = `mount --bind ${join(folder, "disk-of-host-")}${order} ${run}; exec "$@"`;
    const netlab = join(import.meta.dirname, "../../tools/netlab/main.ts");
    const command = ["sh", "-ec", script, "sh", process.execPath, ...nodeFlags, main, ...args];
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

    const exchanged = await onHosts(["train", "--resume", run, "--steps=6"], "$((1 - RANK))");
    expect(exchanged.code, exchanged.err).toBe(0);
    expect(files(1, 6)).toEqual(["config.json", "manifest.json", "model.safetensors", "state-rank-0.safetensors"]);
    const whole = join(folder, "one-disk");
    await terse(train("--steps=6", ...given, "--out", whole));
    expect(weights(disks[1]!, 6).equals(weights(whole, 6))).toBe(true);

    rmSync(join(disks[0]!, "step-6"), { recursive: true });
    const without = await onHosts(["train", "--resume", run, "--steps=8"], "$((1 - RANK))");
    expect(without.code).not.toBe(0);
    expect(without.err).toMatch(/state-rank-1\.safetensors, which rank 1 wrote on .*: no rank's disk has it/);
  });
});
