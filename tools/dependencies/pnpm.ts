import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { StepFailed } from "../remedy.ts";
import type { Progress } from "../steps.ts";
import { installFolder, requireComplete, root, toolchain } from "../toolchain.ts";
import { which } from "../which.ts";
import { thisPlatform } from "./platform-packages.ts";

/** The version that package.json names: "pnpm@12.21.0" → "12.21.0". */
export const pnpmVersion = (
  JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { packageManager: string }
).packageManager.replace("pnpm@", "");

const folder = join(toolchain, `pnpm-${pnpmVersion}`);

/** The folder with the `pnpm` command; undefined when pnpm is not installed yet. */
export function findPnpm(): string | undefined {
  const bin = join(folder, "node_modules", ".bin");
  return existsSync(join(bin, "pnpm")) ? bin : undefined;
}

export async function installPnpm(progress: Progress): Promise<string> {
  const npm = which("npm");
  if (npm === undefined)
    throw new StepFailed("npm, which fetches pnpm, is not on the PATH: `sudo apt-get install npm`.");
  const fill = async (partial: string) => {
    await npmInstall(progress, npm, partial, `pnpm@${pnpmVersion}`);
    // The program is an optional dependency, which npm skips silently when it cannot fetch it.
    await progress.run(join(partial, "node_modules", ".bin", "pnpm"), ["--version"], { cwd: partial });
  };
  await installFolder(progress, folder, fill);
  return requireComplete(findPnpm(), folder);
}

/** Installs a package with its optional parts and commands into a folder's node_modules, whatever is set for npm. */
export async function npmInstall(progress: Progress, npm: string, folder: string, what: string): Promise<void> {
  const platform = Object.entries(thisPlatform()).map(([name, value]) => `--${name}=${value}`);
  const options = [
    ...platform,
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--no-save",
    "--no-package-lock",
    // By default npm waits minutes for a missing network.
    "--prefer-offline",
    "--fetch-retry-mintimeout=1000",
    "--fetch-retry-maxtimeout=5000",
    "--bin-links=true",
    "--dry-run=false",
    "--global=false",
    "--include=optional",
    "--location=project",
    "--package-lock-only=false",
    "--workspaces=false",
  ];
  const env = { npm_config_workspace: undefined }; // no option undoes it
  await progress.run(npm, ["install", "--prefix", folder, ...options, what], { cwd: folder, env });
}
