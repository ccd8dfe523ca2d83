import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { withLock } from "./lock.ts";
import { onEnd } from "./on-end.ts";
import { StepFailed } from "./remedy.ts";

/** The repository. */
export const root = dirname(import.meta.dirname);

/** Where tools are kept, one folder per tool and version; clones share it. */
export const toolchain = resolve(
  process.env["TERSE_TOOLCHAIN"] || join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "terse"),
);

/**
 * Makes sure that `folder` is there: `fill` writes into a temporary folder beside it, which is then renamed, so what has
 * the final name is whole. Of two set-ups at once the second waits, and finds the work done.
 */
export async function bring(
  folder: string,
  fill: (partial: string) => Promise<void>,
  onWait: () => void,
): Promise<void> {
  const [home, name] = [dirname(folder), basename(folder)];
  mkdirSync(home, { recursive: true });
  await withLock(join(home, "locks", name), onWait, async () => {
    if (existsSync(folder)) return;
    removeLeftovers(home, name);
    const partial = mkdtempSync(`${folder}.partial-`);
    const discard = () => rmSync(partial, { recursive: true, force: true, maxRetries: 3 });
    const withdraw = onEnd(discard);
    try {
      await fill(partial);
      chmodSync(partial, 0o777 & ~process.umask()); // mkdtemp made it for us alone; a toolchain folder can be shared
      if (!existsSync(folder)) renameSync(partial, folder);
    } finally {
      discard();
      withdraw();
    }
  });
}

/** What a folder that has its final name holds; where it does not, somebody changed it, and only its removal helps. */
export function whole<T>(found: T | undefined, folder: string): T {
  if (found === undefined)
    throw new StepFailed(
      `${folder} is there but not whole, or not readable: remove it, then run the same command again.`,
    );
  return found;
}

/** Removes what ended set-ups left: of this tool (its lock is ours), and of any tool when a day old. */
function removeLeftovers(home: string, name: string): void {
  const yesterday = Date.now() - 86_400_000;
  for (const entry of readdirSync(home)) {
    if (!entry.includes(".partial-")) continue;
    const path = join(home, entry);
    const old = (lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY) < yesterday;
    if (entry.startsWith(`${name}.partial-`) || old) rmSync(path, { recursive: true, force: true });
  }
}
