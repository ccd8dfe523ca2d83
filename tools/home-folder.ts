import { homedir } from "node:os";

/** The home folder; undefined where HOME is not set and the user has no entry in /etc/passwd, as in containers. */
export function homeFolder(): string | undefined {
  try {
    return homedir() || undefined;
  } catch {
    return undefined;
  }
}
