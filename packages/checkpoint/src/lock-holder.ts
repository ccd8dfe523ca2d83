/**
 * The process that a lock file names, and whether it still runs. On this machine /proc tells; a lock of another machine counts while its
 * file is touched.
 */
import { readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";

/** Seconds between two touches of a lock file by its process. */
export const lockTouchedEverySeconds = 15;
const silentAfterSeconds = 120;

export interface LockHolder {
  readonly pid: number;
  readonly since: string; // when the process began, as /proc says it
  readonly host: string;
  readonly boot: string; // of the machine
}

/** This process, as it writes itself into a lock file. */
export function thisProcess(): LockHolder {
  return { pid: process.pid, since: beganAt(process.pid) ?? "", host: hostname(), boot: bootId() };
}

/** Whether the holder of the lock file at `path` still runs. */
export function isAlive({ pid, since, host, boot }: LockHolder, path: string): boolean {
  if (host === hostname() && boot === bootId()) return beganAt(pid) === since;
  try {
    return Date.now() - statSync(path).mtimeMs < 1000 * silentAfterSeconds;
  } catch {
    return false;
  }
}

/** Whether a process that still runs holds the lock file at `path`; false where the file is absent or unreadable. */
export function isLocked(path: string): boolean {
  try {
    const holder = JSON.parse(readFileSync(path, "utf8")) as LockHolder | null;
    return typeof holder?.pid === "number" && isAlive(holder, path);
  } catch {
    return false;
  }
}

/** When a process began, in ticks since the machine started (proc_pid_stat(5), field 22); undefined where there is none. */
function beganAt(pid: number): string | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

const bootId = () => readText("/proc/sys/kernel/random/boot_id") ?? "";

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
