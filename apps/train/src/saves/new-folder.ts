import { existsSync } from "node:fs";
import { basename, resolve } from "node:path";
import { makeFolder } from "@terse/checkpoint";
import { runsFolder } from "./save-folder.ts";

/** Makes the folder `runs/NAME-TIME` for what the recipe begins, with a number where there is one already. */
export function newFolder(prefix: string, recipe: string): string {
  const name = prefix + basename(recipe).replace(/\.(ya?ml|json)$/, "");
  const time = new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
  for (let i = 1; ; i++) {
    const folder = resolve(runsFolder, `${name}-${time}${i > 1 ? `-${i}` : ""}`);
    if (existsSync(folder)) continue;
    makeFolder(folder);
    return folder;
  }
}
