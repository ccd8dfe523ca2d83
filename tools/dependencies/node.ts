import { existsSync, globSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Progress } from "../steps.ts";
import { installFolder, requireComplete, toolchain } from "../toolchain.ts";

/** The Nodes that the published packages are for: the oldest that is maintained, the one of this repository, the newest. */
export const nodes = ["22.23.3", process.env["TERSE_NODE_VERSION"] ?? "24.21.0", "26.6.0"] as const;

/** The program of a Node of any version, for this processor or for ARM, from npm's package `node-linux-<architecture>`. */
export async function installNode(progress: Progress, version: string, architecture: string): Promise<string> {
  const folder = join(toolchain, architecture === process.arch ? `node-${version}` : `node-${architecture}-${version}`);
  const fill = async (partial: string) => {
    await progress.run("npm", ["pack", `node-linux-${architecture}@${version}`, "--loglevel=error"], { cwd: partial });
    const [tarball] = globSync("*.tgz", { cwd: partial });
    await progress.run("tar", ["-xzf", tarball!, "--strip-components=1"], { cwd: partial });
    rmSync(join(partial, tarball!));
  };
  await installFolder(folder, fill, () => progress.say("another process is installing it"));
  const program = join(folder, "bin", "node");
  return requireComplete(existsSync(program) ? program : undefined, folder);
}
