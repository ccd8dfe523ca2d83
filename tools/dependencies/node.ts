import { existsSync, globSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Progress } from "../steps.ts";
import { installFolder, requireComplete, root, toolchain } from "../toolchain.ts";

const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { engines: { node: string } };

/** The oldest Node that `engines` allow, which is ">=22.18" or the like. */
export const oldestNode = `${engines.node.replace(">=", "")}.0`;

/** The Nodes that the published packages are tried in: the oldest, the one of this repository, the newest. */
export const nodes = [oldestNode, process.env["TERSE_NODE_VERSION"] ?? "24.21.0", "26.6.0"] as const;

/** The program of a Node of any version, for this processor or for ARM, from npm's `node-linux-<architecture>`. */
export async function installNode(progress: Progress, version: string, architecture: string): Promise<string> {
  const folder = join(toolchain, architecture === process.arch ? `node-${version}` : `node-${architecture}-${version}`);
  const fill = async (partial: string) => {
    await progress.run("npm", ["pack", `node-linux-${architecture}@${version}`, "--loglevel=error"], { cwd: partial });
    const [tarball] = globSync("*.tgz", { cwd: partial });
    await progress.run("tar", ["-xzf", tarball!, "--strip-components=1"], { cwd: partial });
    rmSync(join(partial, tarball!));
  };
  await installFolder(progress, folder, fill);
  const program = join(folder, "bin", "node");
  return requireComplete(existsSync(program) ? program : undefined, folder);
}
