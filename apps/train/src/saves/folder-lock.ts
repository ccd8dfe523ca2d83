/**
 * lock.json in a run's folder: one start of one run may write there. The first rank that finds no lock writes it, and keeps the folder: it
 * removes old saves and leftovers. A rank of the same start that finds this lock knows that it shares the folder with the keeper, so
 * every machine with a disk of its own has one keeper.
 *
 * The lock of a process that has ended does not count.
 */
import { linkSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CheckpointError,
  isAlive,
  type LockHolder,
  lockTouchedEverySeconds,
  reasonOf,
  thisProcess,
} from "@terse/checkpoint";

export const lockFile = "lock.json";

interface Holder extends LockHolder {
  readonly start: string; // of the run, a random text that its ranks share
  readonly rank: number;
}

export class FolderLock implements Disposable {
  /** The rank that keeps the folder. */
  readonly keeper: number;
  readonly #release: () => void;

  constructor(keeper: number, release = () => {}) {
    this.keeper = keeper;
    this.#release = release;
  }

  [Symbol.dispose](): void {
    this.#release();
  }
}

/** Takes the folder for a start of a run, or joins a rank of the same start. Throws `CheckpointError` where another run has it. */
export async function lockFolder(
  folder: string,
  { start, rank }: { start: string; rank: number },
): Promise<FolderLock> {
  const path = join(folder, lockFile);
  const mine: Holder = { start, rank, ...thisProcess() };
  for (let unreadable = 0, asked = 0; ; ) {
    try {
      writeFileSync(path, JSON.stringify(mine), { flag: "wx" });
      return held(path, mine);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST")
        throw new CheckpointError(`Cannot write ${path}: ${reasonOf(error) ?? error}.`, { cause: error });
    }
    const text = readText(path);
    if (text === undefined) continue; // it has just been removed
    const holder = parse(text);
    if (holder?.start === start) return new FolderLock(holder.rank);
    if (holder === undefined && unreadable++ < 20) {
      await sleep(50); // it is being written
      continue;
    }
    if (holder && isAlive(holder, path)) {
      // A run that was killed a moment ago is just ending.
      if (holder.host === mine.host && holder.pid !== mine.pid && asked++ < 40) {
        await sleep(50);
        continue;
      }
      throw new CheckpointError(
        `${folder} is in use: process ${holder.pid} on ${holder.host} writes to it (${lockFile}). Wait for that run to end, or end it.`,
      );
    }
    removeStale(path, text, `${path}.${start}-${rank}.tmp`);
  }
}

function held(path: string, mine: Holder): FolderLock {
  const touch = setInterval(() => {
    try {
      utimesSync(path, new Date(), new Date());
    } catch {
      // the disk is away for a moment, or somebody removed the file
    }
  }, 1000 * lockTouchedEverySeconds);
  touch.unref();
  const release = () => {
    clearInterval(touch);
    process.off("exit", release);
    if (parse(readText(path) ?? "")?.start === mine.start) rmSync(path, { force: true });
  };
  process.on("exit", release);
  return new FolderLock(mine.rank, release);
}

/** Removes a lock that has this text. Another process may have replaced it meanwhile: then it is put back. */
function removeStale(path: string, text: string, aside: string): void {
  try {
    renameSync(path, aside);
    if (readText(aside) !== text) linkSync(aside, path);
  } catch {
    // another process was first
  }
  rmSync(aside, { force: true });
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function parse(text: string): Holder | undefined {
  try {
    const holder = JSON.parse(text) as Holder | null;
    return typeof holder?.start === "string" ? holder : undefined;
  } catch {
    return undefined;
  }
}
