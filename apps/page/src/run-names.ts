import { basename, dirname, resolve } from "node:path";

/** A name for each run: the shortest end of its folder's path that no other run has. */
export function runNames(paths: readonly string[]): string[] {
  const all = paths.map((path) => resolve(path));
  return all.map((path) => nameAmong(path, all));
}

function nameAmong(path: string, all: readonly string[]): string {
  let name = basename(path);
  for (let above = dirname(path); above !== dirname(above); above = dirname(above)) {
    if (all.every((other) => other === path || !other.endsWith(`/${name}`))) break;
    name = `${basename(above)}/${name}`;
  }
  return name;
}
