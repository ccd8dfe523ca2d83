/** The files of this process's control group, of version 2 or 1 (cgroups(7)). */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export function readText(...path: string[]): string | undefined {
  try {
    return readFileSync(join(...path), "utf8");
  } catch {
    return undefined;
  }
}

/** Folders below `root` that may have the files of a controller. A container may see its own group as the root folder. */
export function groupFolders(controller: string, root = "/"): { second: string[]; first: string[] } {
  const groups = readText(root, "proc/self/cgroup") ?? "";
  const [, second = ""] = /^0::(.*)$/m.exec(groups) ?? [];
  const [, first = ""] = new RegExp(`^\\d+:(?:[^:]*,)?${controller}(?:,[^:]*)?:(.*)$`, "m").exec(groups) ?? [];
  const below = (folder: string, path: string) => [join(root, folder, path), join(root, folder)];
  return { second: below("sys/fs/cgroup", second), first: below(`sys/fs/cgroup/${controller}`, first) };
}
