import { readFileSync } from "node:fs";

/**
 * Whether a process runs. One that has ended stays in /proc where nobody waits for it, as in a container whose first
 * process does not.
 */
export function isRunning(pid: string | number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
