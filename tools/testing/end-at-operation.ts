/**
 * Leaves behind what a process would that is killed between two operations on files, without a process: the chosen
 * operation and all that follow fail, also those that would clean up.
 */
import fs from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

class Ended extends Error {}

const ofFolders = ["open", "rename", "rm", "unlink", "mkdir"] as const;
const synchronous = ["rmSync", "mkdirSync", "renameSync", "writeFileSync", "unlinkSync"] as const;
const ofFiles = ["write", "sync"] as const;

/** Runs `work` to its operation `last`, counted from 0. Resolves to whether it came so far. */
export async function endAtOperation(last: number, work: () => Promise<unknown>): Promise<boolean> {
  let count = 0;
  const undo: (() => void)[] = [];
  const replace = <T extends object>(on: T, name: keyof T) => {
    const original = on[name] as (...args: unknown[]) => unknown;
    on[name] = function (this: unknown, ...args: unknown[]) {
      if (count++ >= last) throw new Ended("the process has ended");
      return name === "sync" ? undefined : original.apply(this, args); // what the system holds outlives the process
    } as T[keyof T];
    undo.push(() => {
      on[name] = original as T[keyof T];
    });
  };
  const handle = await open(import.meta.filename, "r");
  const files = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  for (const name of ofFiles) replace(files, name);
  for (const name of ofFolders) replace(fs.promises, name);
  for (const name of synchronous) replace(fs, name);
  syncBuiltinESMExports();
  try {
    await work();
  } catch (error) {
    if (count <= last) throw error; // an error of its own
  } finally {
    for (const each of undo) each();
    syncBuiltinESMExports();
  }
  return count > last;
}
