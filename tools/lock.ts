import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { which } from "./which.ts";

/**
 * Runs `work` while this process alone holds the lock `file`; calls `onWait` if another process holds it. A child
 * process holds the kernel's lock (flock), and ends when this process ends, even by SIGKILL. Without a `flock` command,
 * work runs unlocked.
 */
export async function withLock<T>(file: string, onWait: () => void, work: () => Promise<T>): Promise<T> {
  const flock = which("flock");
  if (flock === undefined) return work();
  mkdirSync(dirname(file), { recursive: true });
  const holder = spawn(flock, ["-x", file, "sh", "-c", "echo held && exec cat >/dev/null"], {
    stdio: ["pipe", "pipe", "ignore"],
    detached: true, // Ctrl-C does not reach the holder; it ends when its input closes
  });
  const waiting = setTimeout(onWait, 500);
  try {
    await Promise.race([once(holder.stdout, "data"), once(holder, "exit")]);
    clearTimeout(waiting);
    return await work();
  } finally {
    clearTimeout(waiting);
    holder.stdin.on("error", () => {});
    holder.stdin.end();
    if (holder.exitCode === null && holder.signalCode === null) await once(holder, "exit");
  }
}
