import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { which } from "./which.ts";

/**
 * Runs `work` while this process alone holds `file`. The lock is the kernel's (flock), held by a child whose input we
 * hold open: it ends with us, however we end. Where there is no `flock` command, work runs unlocked.
 */
export async function withLock<T>(file: string, onWait: () => void, work: () => Promise<T>): Promise<T> {
  const flock = which("flock");
  if (flock === undefined) return work();
  mkdirSync(dirname(file), { recursive: true });
  const holder = spawn(flock, ["-x", file, "sh", "-c", "echo held && exec cat >/dev/null"], {
    stdio: ["pipe", "pipe", "ignore"],
    detached: true, // Ctrl-C is for us; the holder goes when we are gone
  });
  const patience = setTimeout(onWait, 500);
  try {
    await Promise.race([once(holder.stdout, "data"), once(holder, "exit")]);
    clearTimeout(patience);
    return await work();
  } finally {
    clearTimeout(patience);
    holder.stdin.on("error", () => {});
    holder.stdin.end();
    if (holder.exitCode === null && holder.signalCode === null) await once(holder, "exit");
  }
}
