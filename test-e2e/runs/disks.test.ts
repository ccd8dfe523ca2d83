/** Runs whose disk is full, or read-only for a while. They mount disks of their own, which not every user may. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { nodeFlags } from "../../tools/programs.ts";
import { lastLine, main, outcomeOf, tinyTraining, trainingFolder } from "./terse.ts";

const { folder, text } = trainingFolder("disks");
const train = (...args: string[]) => [...tinyTraining(text), "--sample.bytes=0", ...args];

/** The flags of `unshare` with which a program may mount: a user is root in a namespace; in a chroot only root may. */
const mayMount = ["-m", "-rm"].find(
  (flags) => spawnSync("unshare", [flags, "mount", "-t", "tmpfs", "none", "/tmp"]).status === 0,
);

describe.skipIf(mayMount === undefined)("a disk that is full (skipped without the right to mount)", () => {
  /**
   * Trains on a disk of some megabytes in a mount namespace; `during` gets the disk's path, as this process sees it.
   */
  const trainOnDisk = (megabytes: number, args: string[], during: (line: string, disk: string) => void) => {
    const disk = join(folder, `disk-${megabytes}`);
    mkdirSync(disk, { recursive: true });
    const script = `mount -t tmpfs -o size=${megabytes}m none ${disk}; exec "$@"`;
    const command = [process.execPath, ...nodeFlags, main, ...train(...args, "--out", join(disk, "run"))];
    const all = ["unshare", mayMount!, "sh", "-ec", script, "sh", ...command];
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

it.skipIf(mayMount === undefined)(
  "an export that a full disk ends leaves nothing, and succeeds when there is space",
  () => {
    const args = (...words: string[]) => [process.execPath, ...nodeFlags, ...words];
    const [program, ...trained] = args(main, ...train("--steps=1", "--out=exported"));
    expect(spawnSync(program!, trained, { cwd: folder }).status).toBe(0);
    const disk = join(folder, "small");
    mkdirSync(disk);
    const exporting = args(join(dirname(main), "commands/main.ts"), "export", "exported", "--out", join(disk, "model"));
    const script = `mount -t tmpfs -o size=64k none ${disk}; "$@" || ls -A ${disk}/model; mount -o remount,size=8m ${disk}; "$@"`;
    const { stdout, stderr } = spawnSync("unshare", [mayMount!, "sh", "-ec", script, "sh", ...exporting], {
      cwd: folder,
      encoding: "utf8",
    });
    expect(stderr).toMatch(/^error: Cannot write .*model\.safetensors: no space is left on its disk; free some .*\n$/);
    expect(stdout).toMatch(/^\S+model: .*, model\.safetensors\n$/);
  },
);

describe.skipIf(mayMount === undefined)(
  "a disk that is read-only for a while (skipped without the right to mount)",
  () => {
    it("loses no line and no run: what could not be written is said, and written later", async () => {
      const disk = join(folder, "read-only");
      mkdirSync(disk);
      const given = ["--steps=100000", "--save.every=25", "--logEvery=1", "--evaluate.every=0", "--tensorboard"];
      const command = [process.execPath, ...nodeFlags, main, ...train(...given, "--out", `${disk}/run`)];
      const script = `mount -t tmpfs none ${disk}; exec "$@"`;
      let [state, last, until] = ["written", 0, 0];
      const all = ["unshare", mayMount!, "sh", "-ec", script, "sh", ...command];
      const { code, out, err } = await outcomeOf(all, folder, (line, pid) => {
        last = Number(/^step: (\d+)\//.exec(line)?.[1] ?? last);
        const remount = (how: string) =>
          spawnSync("nsenter", [
            ...[
              "--preserve-credentials",
              `--target=${pid}`,
              "--mount",
              "--root",
              ...(mayMount === "-rm" ? ["--user"] : []),
            ],
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
  },
);
