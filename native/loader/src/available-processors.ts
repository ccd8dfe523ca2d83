/**
 * How many processors this process may use. Its affinity says on which cores it may run (a launcher or a cpuset has
 * bound it), and the CPU quota of its control group says for how much of their time: containers with `--cpus` or
 * `limits.cpu` see all cores of the machine. cgroups(7); Linux Documentation/scheduler/sched-bwc.rst and
 * admin-guide/cgroup-v2.rst. Imports no package, because tools use it too.
 */
import { readFileSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative, sep } from "node:path";

/** Processors that the processes of a control group may use together, on average. */
export interface Quota {
  /** Identifies the group, also from within another container of the machine. */
  readonly group: string;
  readonly processors: number; // 1.5: one and a half
}

export interface ProcessorLimits {
  /** The numbers of the cores on which this process may run. */
  readonly cores: readonly number[];
  /** The quotas of this process's control group and of all groups above it. */
  readonly quotas: readonly Quota[];
}

/**
 * A whole number, 1 or more. Half a processor is no thread: one thread more than the quota allows makes all of them
 * wait.
 */
export function availableProcessors({ cores, quotas } = processorLimits()): number {
  return Math.max(1, Math.floor(Math.min(cores.length, ...quotas.map(({ processors }) => processors)) + 1e-6));
}

/** `root` is for tests. */
export function processorLimits(root = "/"): ProcessorLimits {
  return { cores: allowedCores(root), quotas: quotasOf(root) };
}

function allowedCores(root: string): number[] {
  const [, list] = /^Cpus_allowed_list:\s*(\S+)$/m.exec(read(join(root, "proc/self/status")) ?? "") ?? [];
  if (list === undefined) return Array.from({ length: availableParallelism() }, (_, core) => core); // not Linux
  return list.split(",").flatMap((range) => {
    const [from, to = from] = range.split("-").map(Number) as [number, number?]; // 0-3,8
    return Array.from({ length: to - from + 1 }, (_, i) => from + i);
  });
}

function quotasOf(root: string): Quota[] {
  const mounts = mountsIn(read(join(root, "proc/self/mountinfo")) ?? "");
  const groups = (read(join(root, "proc/self/cgroup")) ?? "").split("\n");
  return groups.flatMap((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === undefined) return [];
    const isUnified = controllers === ""; // version 2
    if (!isUnified && !controllers!.split(",").includes("cpu")) return [];
    const mount = mounts.find(({ type, options }) =>
      isUnified ? type === "cgroup2" : type === "cgroup" && options.includes("cpu"),
    );
    if (mount === undefined) return [];
    return foldersUp(path, mount.of).flatMap((folder) => {
      const at = join(root, mount.at, folder);
      const processors = isUnified ? unifiedQuota(at) : quotaOfVersionOne(at);
      return processors === undefined ? [] : [{ group: identityOf(at), processors }];
    });
  });
}

/** cpu.max: "150000 100000" is one and a half processors; "max 100000" is no limit. */
function unifiedQuota(folder: string): number | undefined {
  const [quota, period] = (read(join(folder, "cpu.max")) ?? "").split(/\s+/).map(Number);
  return ratio(quota, period);
}

function quotaOfVersionOne(folder: string): number | undefined {
  const [quota, period] = ["quota", "period"].map((name) => read(join(folder, `cpu.cfs_${name}_us`)));
  return quota === undefined || period === undefined ? undefined : ratio(Number(quota), Number(period)); // −1: no limit
}

const ratio = (quota = Number.NaN, period = Number.NaN) => (quota > 0 && period > 0 ? quota / period : undefined);

/**
 * The folders of a group and of those above it, below the mount point, which shows the group `of`. Where a container
 * has no view of its own path, as without a cgroup namespace, the mount point is its group.
 */
function foldersUp(path: string, of: string): string[] {
  const below = relative(of, path);
  const names = below === "" || below.startsWith("..") ? [] : below.split(sep);
  return names.map((_, i) => names.slice(0, names.length - i).join("/")).concat("");
}

/** A name that is the same in every container: device and inode in the file system of control groups. */
function identityOf(folder: string): string {
  const { dev, ino } = statSync(folder);
  return `${dev}:${ino}`;
}

interface Mount {
  readonly of: string; // the folder of its file system that it shows
  readonly at: string;
  readonly type: string;
  readonly options: readonly string[];
}

/** proc_pid_mountinfo(5): `33 31 0:30 /docker/1f2e /sys/fs/cgroup/cpu rw,nosuid shared:9 - cgroup cgroup rw,cpu` */
function mountsIn(text: string): Mount[] {
  return text.split("\n").flatMap((line) => {
    const [, of, at, type, options] = /^\d+ \d+ \S+ (\S+) (\S+) .*? - (\S+) \S+ (\S+)/.exec(line) ?? [];
    return options === undefined ? [] : [{ of: of!, at: at!, type: type!, options: options.split(",") }];
  });
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}
