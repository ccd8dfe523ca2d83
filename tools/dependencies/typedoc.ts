import { join } from "node:path";
import type { Progress } from "../steps.ts";
import { installFolder, toolchain } from "../toolchain.ts";
import { pins } from "./versions.ts";

/** The program of TypeDoc and its TypeScript, from npm. Only `./terse docs` uses it, for the site of the documents. */
export async function installTypedoc(progress: Progress): Promise<string> {
  const folder = join(toolchain, `typedoc-${pins.typedoc}`);
  const packages = [`typedoc@${pins.typedoc}`, `typescript@${pins.typedocTypescript}`];
  const fill = async (partial: string) => {
    await progress.run("npm", [
      "install",
      "--no-audit",
      "--no-fund",
      "--ignore-scripts",
      "--prefix",
      partial,
      ...packages,
    ]);
  };
  await installFolder(progress, folder, fill);
  return join(folder, "node_modules", "typedoc", "bin", "typedoc");
}
