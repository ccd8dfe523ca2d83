/** A private Slurm of one node on this machine, for the duration of a test. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir, userInfo } from "node:os";
import { delimiter, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./start-ranks.ts";

const unpacked = process.env["TERSE_SLURM"]; // the folder with its unpacked packages; otherwise the system's
const root = join(unpacked ?? "/", "usr");
const folders = [join(root, "sbin"), join(root, "bin")];
/** Debian appends -wlm to the names of the daemons. */
const find = (name: string) =>
  folders.flatMap((folder) => [join(folder, name), join(folder, `${name}-wlm`)]).find((file) => existsSync(file));
const needed = ["slurmctld", "slurmd", "slurmstepd", "srun", "salloc", "sbatch", "scancel", "scontrol", "sinfo"];
const plugins = (existsSync(join(root, "lib")) ? readdirSync(join(root, "lib")) : [])
  .flatMap((name) => [join(root, "lib", name), join(root, "lib", name, "slurm-wlm"), join(root, "lib", name, "slurm")])
  .find((folder) => existsSync(join(folder, "auth_none.so")));

/** Why it cannot run here; undefined where it can. */
export function slurmObstacle(): string | undefined {
  const lacks = needed.filter((name) => find(name) === undefined);
  if (lacks.length === needed.length)
    return process.env["TERSE_SLURM_MISSING"] ?? "there is no Slurm here: `./terse setup` installs one";
  if (lacks.length > 0) return `this Slurm lacks ${lacks.join(", ")}`;
  return plugins ? undefined : "this Slurm needs munge, because it has no auth_none.so";
}

export interface Slurm extends AsyncDisposable {
  readonly env: NodeJS.ProcessEnv;
  /** The command line of a Slurm program, which is the first word. */
  command(...words: string[]): string[];
  /** The values of `srun --mpi`. */
  readonly interfaces: readonly string[];
}

export async function startSlurm(): Promise<Slurm> {
  const folder = mkdtempSync(join(tmpdir(), "terse-slurm-"));
  const [controller, node] = [await freePort(), await freePort()];
  const me = userInfo().username;
  for (const name of ["state", "spool"]) mkdirSync(join(folder, name));
  const settings = {
    ClusterName: "test",
    SlurmctldHost: `${hostname()}(127.0.0.1)`,
    SlurmUser: me,
    SlurmdUser: me,
    AuthType: "auth/none",
    CredType: "cred/none",
    SlurmctldPort: controller,
    SlurmdPort: node,
    FirstJobId: controller, // the port of ranks follows from their job: another one than in other tests' Slurm
    StateSaveLocation: join(folder, "state"),
    SlurmdSpoolDir: join(folder, "spool"),
    SlurmctldPidFile: join(folder, "slurmctld.pid"),
    SlurmdPidFile: join(folder, "slurmd.pid"),
    PluginDir: plugins!,
    ProctrackType: "proctrack/linuxproc",
    TaskPlugin: "task/none",
    SwitchType: "switch/none",
    SchedulerParameters: "sched_interval=2,bf_interval=2", // seconds; a job that may start now would wait for a minute
    MpiDefault: "none",
    SelectType: "select/linear",
    SlurmdParameters: "config_overrides",
    NodeName: `${hostname()} NodeAddr=127.0.0.1 CPUs=2`,
    PartitionName: "test Nodes=ALL Default=YES State=UP",
  };
  const file = join(folder, "slurm.conf");
  writeFileSync(
    file,
    Object.entries(settings)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(""),
  );

  const below = unpacked ? join(plugins!, "..") : "";
  const env = {
    SLURM_CONF: file,
    PATH: [...folders, process.env["PATH"]].join(delimiter), // for batch scripts
    ...(unpacked && { LD_LIBRARY_PATH: `${below}:${plugins}` }),
  };
  const view = viewWithPmix(folder);
  const command = (name: string, ...words: string[]) => [...view, find(name)!, ...words];
  let output = "";
  const daemons = [command("slurmctld", "-D", "-c"), command("slurmd", "-D", "-d", find("slurmstepd")!)].map(
    ([program, ...words]) => {
      const child = spawn(program!, words, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding("utf8").on("data", (text: string) => {
          output += text;
        });
      return child;
    },
  );
  const until = Date.now() + 120_000;
  const run = (...named: [string, ...string[]]) => {
    const [program, ...words] = command(...named);
    return spawnSync(program!, words, { env: { ...process.env, ...env }, encoding: "utf8" });
  };
  const isIdle = () => run("sinfo", "--noheader", "--format=%t").stdout.trim() === "idle";
  const stop = async () => {
    // A daemon that ends leaves its jobs behind.
    const latest = Date.now() + 20_000;
    if (daemons.every(isRunning)) run("scancel", "--user", me, "--full", "--signal=KILL");
    while (daemons.every(isRunning) && !isIdle() && Date.now() < latest) await sleep(100);
    await Promise.all(daemons.map(end));
    rmSync(folder, { recursive: true });
  };
  while (!isIdle()) {
    if (Date.now() > until || !daemons.every(isRunning)) {
      await stop();
      const [, why] = /^slurmd\S*: (?:fatal|error): (.*)$/m.exec(output) ?? [];
      throw new Error(`Slurm does not start here: ${why ?? output}`);
    }
    await sleep(100);
  }
  const { stdout, stderr } = run("srun", "--mpi=list");
  return { env, command, interfaces: `${stdout}${stderr}`.match(/\w+/g) ?? [], [Symbol.asyncDispose]: stop };
}

/**
 * Slurm opens PMIx at a fixed path. Where its packages were unpacked elsewhere, root can mount PMIx at that path for
 * one command. The result goes in front of such a command; it is empty where this is not needed or not possible.
 */
function viewWithPmix(folder: string): string[] {
  const below = unpacked ? join(plugins!, "..") : "";
  if (!unpacked || !existsSync(join(below, "pmix2"))) return [];
  const [file, place] = [join(folder, "with-pmix"), join("/", relative(unpacked, below))];
  const mount = `mount -t overlay overlay -o lowerdir=${below}:${place} ${place}`;
  writeFileSync(file, `#!/bin/sh\nexec unshare --mount sh -c '${mount} && exec "$@"' sh "$@"\n`, { mode: 0o755 });
  return spawnSync(file, ["true"]).status === 0 ? [file] : [];
}

const isRunning = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null;

async function end(daemon: ChildProcess): Promise<void> {
  if (!isRunning(daemon)) return;
  const ended = new Promise((resolve) => daemon.on("close", resolve));
  daemon.kill("SIGTERM");
  const killTimer = setTimeout(() => daemon.kill("SIGKILL"), 10_000);
  await ended;
  clearTimeout(killTimer);
}
