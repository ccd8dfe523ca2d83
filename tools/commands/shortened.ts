import { homedir } from "node:os";

/** "~/terse" for a path in the home folder. */
export function shortened(path: string): string {
  const home = homedir();
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}
