/**
 * lock.json in a run's folder: one start of one run may write there. The first rank that finds no lock writes it, and
 * keeps the folder: it removes old saves and leftovers. A rank of the same start that finds this lock knows that it
 * shares the folder with the keeper, so every machine with a disk of its own has one keeper.
 *
 * The lock of a process that has ended does not count. Where that cannot be seen, in another container or on another
 * machine, the lock is watched for a while: its process changes it every few seconds (lock-thread.ts), and notices when
 * another start has taken the folder.
 */
import { closeSync, linkSync, lstatSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { CheckpointError, cannot, isRunning, LockWatch, lockSilentAfterSeconds, thisProcess } from "@terse/checkpoint";
import { type Holder, parseHolder } from "./lock-holder.ts";
import type { FromLockThread, LockThreadData } from "./lock-thread.ts";

export const lockFile = "lock.json";

/** Another start has taken the folder of a run that seemed to have ended. */
export class FolderTakenError extends CheckpointError {}

export class FolderLock implements Disposable {
  /** The rank that keeps the folder. */
  readonly keeper: number;
  /** On the keeper: another start has the folder now. */
  taken: FolderTakenError | undefined;
  /** On the keeper: is told when the lock file cannot be written, and why, and when it can be again. */
  onUnwritten: (why: string | undefined) => void = () => {};
  readonly #release: () => void;
  readonly #holder: () => Holder | undefined; // what the file says now, where it is another start's

  constructor(keeper: number, release = () => {}, holder = (): Holder | undefined => undefined) {
    this.keeper = keeper;
    this.#release = release;
    this.#holder = holder;
  }

  /** Reads the file. Throws `FolderTakenError`. */
  check(): void {
    const holder = this.#holder();
    if (holder) this.taken ??= takenBy(`process ${holder.pid} on ${holder.host}`);
    if (this.taken) throw this.taken;
  }

  [Symbol.dispose](): void {
    this.#release();
  }
}

const takenBy = (who: string) =>
  new FolderTakenError(
    `${who} took the folder of this run over (${lockFile}), which could not write to it for a while, or was stopped. This run ends; start it with --resume, after the other one, to go on from the last save.`,
  );

/**
 * Takes the folder for a start of a run, or joins a rank of the same start. `onWait` is called once where that takes
 * longer, with the reason. Throws `CheckpointError` where another run has it.
 */
export async function lockFolder(
  folder: string,
  { start, rank }: { start: string; rank: number },
  onWait: (why: string) => void = () => {},
): Promise<FolderLock> {
  const path = join(folder, lockFile);
  const mine: Holder = { start, rank, ...thisProcess() };
  const watch = new LockWatch(path);
  let waits = false;
  for (let asked = 0; ; ) {
    if (create(path, mine)) return keepLock(path, mine);
    const state = watch.look();
    const { text } = watch; // not read again: another start may have replaced it meanwhile
    if (text === undefined) {
      if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
        throw new CheckpointError(`${path} is a link that leads nowhere: remove it, and start again.`);
      continue; // it has just been removed
    }
    const holder = parseHolder(text);
    if (holder?.start === start) return new FolderLock(holder.rank);
    if (state === "free") {
      removeStale(path, text, `${path}.${start}-${rank}.tmp`);
      continue;
    }
    const isNear = holder !== undefined && isRunning(holder) === true;
    if (state === "held" && holder !== undefined) {
      // A run that was killed a moment ago is just ending.
      if (!isNear || holder.pid === mine.pid || asked++ >= 40) throw inUse(folder, holder, isNear);
    } else if (holder !== undefined && !waits) {
      waits = true;
      onWait(
        `${path} is of process ${holder.pid} on ${holder.host}, in another container or on another machine: waits up to ${lockSilentAfterSeconds} s to see whether it still runs`,
      );
    }
    await sleep(50);
  }
}

/** The process of this machine that writes to the folder, where one is seen to run. */
export function runningHolder(folder: string): Holder | undefined {
  const holder = parseHolder(readText(join(folder, lockFile)) ?? "");
  return holder !== undefined && isRunning(holder) === true ? holder : undefined;
}

function inUse(folder: string, { pid, host }: Holder, isNear: boolean): CheckpointError {
  const where = isNear ? host : `${host}, in another container or on another machine,`;
  return new CheckpointError(
    `${folder} is in use: process ${pid} on ${where} writes to it (${lockFile}). Wait for that run to end, or end it.`,
  );
}

/** False where there is a lock file. */
function create(path: string, mine: Holder): boolean {
  let file: number | undefined;
  try {
    file = openSync(path, "wx");
    writeSync(file, JSON.stringify(mine));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    if (file !== undefined) rmSync(path, { force: true }); // the disk is full
    throw cannot("write", path, error);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function keepLock(path: string, mine: Holder): FolderLock {
  const isReleased = new Int32Array(new SharedArrayBuffer(4));
  const thread = new Worker(new URL("./lock-thread.ts", import.meta.url), {
    workerData: { path, mine, isReleased } satisfies LockThreadData,
  });
  thread.unref();
  const release = () => {
    Atomics.store(isReleased, 0, 1); // first: the thread writes a lock that is missing anew
    void thread.terminate();
    process.off("exit", release);
    if (parseHolder(readText(path) ?? "")?.start !== mine.start) return;
    try {
      rmSync(path, { force: true });
    } catch {
      // the disk is away or read-only now; a lock of a process that has ended does not count
    }
  };
  const lock = new FolderLock(mine.rank, release, () => {
    const holder = parseHolder(readText(path) ?? "");
    return holder?.start === mine.start ? undefined : holder;
  });
  let before: string | undefined;
  thread.on("message", ({ unwritten, taken }: FromLockThread) => {
    if (unwritten !== before) lock.onUnwritten(unwritten);
    before = unwritten;
    if (taken !== undefined) lock.taken ??= takenBy(taken);
  });
  thread.on("error", (error) => {
    lock.onUnwritten(`its thread has ended (${error.message})`);
  });
  process.on("exit", release);
  return lock;
}

/**
 * Removes a lock that has this text. Another process may have replaced it meanwhile: then it is put back. Throws
 * `CheckpointError` where the folder does not let it go.
 */
function removeStale(path: string, text: string, aside: string): void {
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return; // another process was first
    throw cannot("write", path, error);
  }
  try {
    if (readText(aside) !== text) linkSync(aside, path);
  } catch {
    // another process was first
  }
  try {
    rmSync(aside, { force: true });
  } catch {
    // it counts for nothing
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
