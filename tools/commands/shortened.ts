import { homeFolder } from "../home-folder.ts";

/** "~/terse" for a path in the home folder. */
export function shortened(path: string): string {
  const home = homeFolder();
  return home !== undefined && path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}
