/**
 * The thread that changes a lock file every few seconds, by a count in it, so that starts elsewhere see that its
 * process runs. A step may keep JavaScript's main thread busy for longer. A disk that does not take the count now may
 * take the next one.
 */
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { uptime } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { lockChangesEverySeconds, lockSilentAfterSeconds, reasonOf } from "@terse/checkpoint";
import { type Holder, parseHolder } from "./lock-holder.ts";

export interface LockThreadData {
  readonly path: string;
  readonly mine: Holder;
  /** Its one element is 1 when the lock is released. */
  readonly isReleased: Int32Array;
}

export interface FromLockThread {
  /** Why the file could not be written; undefined when it could be again. */
  readonly unwritten?: string | undefined;
  /** The process that has taken the folder, in words. */
  readonly taken?: string | undefined;
}

const { path, mine, isReleased } = workerData as LockThreadData;
let count = 0;
/** In seconds of `uptime`, which goes on while the machine sleeps, and does not follow a change of its clock. */
let changedAt = uptime();
let told: FromLockThread = {};

/** Writes the lock anew. Returns the process that has taken the folder, in words, if there is one. */
function change(): string | undefined {
  // Never shorter than the one before it, so it replaces all of that.
  const text = JSON.stringify({ ...mine, count: ++count });
  let file: number;
  try {
    file = openSync(path, "r+");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    if (Atomics.load(isReleased, 0) === 1) return undefined;
    // Another start may have come and ended, if this process was stopped for so long.
    if (uptime() - changedAt >= lockSilentAfterSeconds) return "another process";
    writeFileSync(path, text, { flag: "wx" });
    return undefined;
  }
  try {
    const holder = parseHolder(readFileSync(file, "utf8"));
    if (holder !== undefined && holder.start !== mine.start) return `process ${holder.pid} on ${holder.host}`;
    writeSync(file, text, 0);
    return undefined;
  } finally {
    closeSync(file);
  }
}

function report(): FromLockThread {
  try {
    const taken = change();
    changedAt = uptime();
    return { taken };
  } catch (error) {
    return { unwritten: reasonOf(error) ?? String(error) };
  }
}

setInterval(() => {
  if (told.taken !== undefined) return;
  const found = report();
  if (found.taken === told.taken && found.unwritten === told.unwritten) return;
  told = found;
  parentPort!.postMessage(found);
}, 1000 * lockChangesEverySeconds);
