/**
 * The process that a lock file names, and whether it still runs. /proc tells that for a process of this PID namespace.
 * A process in another container or on another machine is judged by the file, which both sides share: its process
 * writes to the file again and again, and the reader waits for a change. No clock is compared with another machine's.
 */
import { closeSync, fstatSync, readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { cannot } from "./checkpoint-error.ts";
import { parsedJson } from "./json.ts";
import { openRegularSync } from "./regular-file.ts";

/** Seconds between two changes of a lock file by its process. */
export const lockChangesEverySeconds = 5;
/** Seconds without a change after which the process is taken for ended. Some changes may arrive late. */
export const lockSilentAfterSeconds = 20;
// Locks that name no namespace are of earlier versions, which touched theirs every 15 s.
const silentBeforeNamespaces = 60;

/** The process that a lock file names. */
export interface LockHolder {
  readonly pid: number; // in its namespace
  readonly since: string; // when the process began, as /proc says it
  readonly host: string;
  readonly boot: string; // of the machine
  readonly namespace?: string; // of its pid, and of the clock of `since`; "" where it cannot be known
}

/**
 * Whether a lock is held. `unclear`: nothing of the process can be seen from here, and the file has not been watched
 * for long enough.
 */
export type LockState = "held" | "free" | "unclear";

/** This process, as it writes itself into a lock file. */
export function thisProcess(): LockHolder & { readonly namespace: string } {
  const { pid, since } = statOf("self") ?? {};
  // A namespace may have the /proc of another one, where processes have other numbers.
  const namespace = pid === process.pid ? [linkOf("/proc/self/ns/pid"), linkOf("/proc/self/ns/time")].join(" ") : "";
  return { pid: process.pid, since: since ?? "", host: hostname(), boot: bootId(), namespace };
}

/** Whether the process runs; undefined where it cannot be seen from here. */
export function isRunning({ pid, since, host, boot, namespace }: LockHolder): boolean | undefined {
  const here = thisProcess();
  const isNear = here.namespace !== "" && here.boot !== "";
  if (!isNear || namespace !== here.namespace || boot !== here.boot || host !== here.host) return undefined;
  const found = statOf(`${pid}`);
  if (found) return found.since === since && !found.hasEnded;
  try {
    process.kill(pid, 0);
    return undefined; // /proc hides the processes of other users (hidepid)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH" ? false : undefined;
  }
}

/** Watches a lock file, as often as `look` is called. */
export class LockWatch {
  /** What the file said when it was looked at; undefined where there was none. */
  text: string | undefined;
  readonly #path: string;
  readonly #now: () => number; // milliseconds
  #seen: string | undefined;
  #before = 0; // when it was looked at last
  #watched = 0; // milliseconds without a change
  #changed = false;

  constructor(path: string, now: () => number = () => performance.now()) {
    this.#path = path;
    this.#now = now;
  }

  /** Looks at the file once more. Throws `CheckpointError` where it is there and cannot be read. */
  look(): LockState {
    const file = readLock(this.#path);
    this.text = file?.text;
    const now = this.#now();
    const holder = file && holderIn(file.text);
    const isFirst = this.#seen === undefined;
    // Where this process was stopped for a while, the other one may have been, too.
    this.#watched += isFirst ? 0 : Math.min(now - this.#before, 1000 * lockChangesEverySeconds);
    this.#before = now;
    if (file?.seen !== this.#seen) {
      this.#changed = !isFirst && file !== undefined;
      this.#seen = file?.seen;
      this.#watched = 0;
    }
    if (file === undefined) return "free";
    const running = holder && isRunning(holder);
    if (running !== undefined) return running ? "held" : "free";
    if (this.#watched >= 1000 * silentAfter(holder)) return "free";
    return this.#changed ? "held" : "unclear";
  }
}

function silentAfter(holder: LockHolder | undefined): number {
  if (holder === undefined) return 1; // it has been cut short, unless it is just being written
  return holder.namespace === undefined ? silentBeforeNamespaces : lockSilentAfterSeconds;
}

/**
 * The text of a lock file, and a value that changes with every write to it; undefined where there is no file. Opening
 * the file makes a file server look again.
 */
function readLock(path: string): { text: string; seen: string } | undefined {
  try {
    const file = openRegularSync(path);
    try {
      const { ino, mtimeMs } = fstatSync(file);
      const text = readFileSync(file, "utf8");
      return { text, seen: `${ino} ${mtimeMs} ${text}` };
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw cannot("read", path, error);
  }
}

function holderIn(text: string): LockHolder | undefined {
  const holder = parsedJson(text) as LockHolder | null | undefined;
  return Number.isSafeInteger(holder?.pid) && holder!.pid > 0 ? holder! : undefined;
}

/** A process's number, its start in ticks since boot, and whether it is a zombie (proc_pid_stat(5)). */
function statOf(process: string): { pid: number; since: string; hasEnded: boolean } | undefined {
  const stat = readText(`/proc/${process}/stat`);
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" "); // from field 3 on
  if (fields?.[19] === undefined) return undefined;
  return { pid: Number.parseInt(stat!, 10), since: fields[19], hasEnded: /^[ZXx]$/.test(fields[0]!) };
}

const bootId = () => readText("/proc/sys/kernel/random/boot_id") ?? "";

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
