import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { withLock } from "./lock.ts";
import { onEnd } from "./on-end.ts";
import { requireSpace, StepFailed } from "./remedy.ts";
import { CommandFailed } from "./run.ts";
import type { Progress } from "./steps.ts";

/** The root folder of the repository. */
export const root = dirname(import.meta.dirname);

/** The toolchain folder: a folder for each tool and version. All clones of the repository share it. */
export const toolchain = resolve(
  process.env["TERSE_TOOLCHAIN"] || join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "terse"),
);

export interface InstallOptions {
  /** The free space that `fill` needs. */
  bytes?: number;
  /** What the user can do where a command fails. */
  hint?: string;
}

/**
 * Makes `folder`, unless it exists. `fill` writes into a temporary folder beside it, which is then renamed: a folder
 * with the final name is complete. When two processes install the same folder, the second waits (and says so), then
 * uses it.
 */
export async function installFolder(
  progress: Progress,
  folder: string,
  fill: (partial: string) => Promise<void>,
  { bytes = 0, hint }: InstallOptions = {},
): Promise<void> {
  const [home, name] = [dirname(folder), basename(folder)];
  mkdirSync(home, { recursive: true });
  const wait = () => progress.say(`another process is installing ${name}`);
  await withLock(join(home, "locks", name), wait, async () => {
    if (existsSync(folder)) return;
    removeLeftovers(home, name);
    requireSpace(home, bytes);
    const partial = mkdtempSync(`${folder}.partial-`);
    const discard = () => rmSync(partial, { recursive: true, force: true, maxRetries: 3 });
    const cancel = onEnd(discard);
    try {
      await fill(partial);
      // mkdtemp allows only this user; others may share the toolchain folder.
      chmodSync(partial, 0o777 & ~process.umask());
      if (!existsSync(folder)) renameSync(partial, folder);
    } catch (error) {
      if (error instanceof CommandFailed) error.hint = hint;
      throw error;
    } finally {
      discard();
      cancel();
    }
  });
}

/** `found` in an installed folder; throws where it is missing, which means that somebody has changed the folder. */
export function requireComplete<T>(found: T | undefined, folder: string): T {
  if (found === undefined)
    throw new StepFailed(`${folder} is incomplete or not readable: remove it, then run the same command again.`);
  return found;
}

/**
 * Removes temporary folders of killed processes: those of this tool, whose lock we hold, and any that are a day old.
 */
function removeLeftovers(home: string, name: string): void {
  const yesterday = Date.now() - 86_400_000;
  for (const entry of readdirSync(home)) {
    if (!entry.includes(".partial-")) continue;
    const path = join(home, entry);
    const old = (lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY) < yesterday;
    if (entry.startsWith(`${name}.partial-`) || old) rmSync(path, { recursive: true, force: true });
  }
}
