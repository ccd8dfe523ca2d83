import { createHash } from "node:crypto";
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { variables } from "../environment.ts";
import { withLock } from "../lock.ts";
import { StepFailed } from "../remedy.ts";
import type { Progress } from "../steps.ts";
import { root, toolchain } from "../toolchain.ts";
import { platformPackages, thisPlatform } from "./platform-packages.ts";
import { pnpmVersion } from "./pnpm.ts";

const stamp = join(root, "node_modules", ".terse-packages");

/** How node_modules is laid out, whatever pnpm's settings are for other projects. */
export const layout: readonly string[] = Object.entries({
  "confirm-modules-purge": false,
  dev: true,
  "enable-global-virtual-store": false,
  "ignore-workspace": false,
  lockfile: true,
  "modules-dir": "node_modules",
  "node-linker": "isolated",
  optional: true,
  "recursive-install": true,
  "shared-workspace-lockfile": true,
  symlink: true,
  "virtual-store-dir": "node_modules/.pnpm",
}).map(([name, value]) => `--config.${name}=${value}`);

/** Whether node_modules fits the lockfile and the package.json files. */
export function packagesAreInstalled(): boolean {
  return existsSync(stamp) && readFileSync(stamp, "utf8") === wanted();
}

export async function installPackages(progress: Progress, pnpmFolder: string): Promise<void> {
  await withCheckoutLock(progress, async () => {
    if (packagesAreInstalled()) return;
    // pnpm skips binaries whose `engines` do not fit the first node on the PATH, so that must be ours.
    const pnpm = (...args: string[]) =>
      progress.run(join(pnpmFolder, "pnpm"), args, { cwd: root, env: variables({ pnpm: pnpmFolder }) });
    await requireRegistry(pnpm);
    const install = ["install", "--frozen-lockfile", ...layout];
    await pnpm(...install);
    if (skippedBinaries().length > 0) {
      // pnpm believes that everything is installed; it checks again only without node_modules.
      rmSync(join(root, "node_modules"), { recursive: true, force: true });
      await pnpm(...install);
    }
    const missing = skippedBinaries();
    if (missing.length > 0) {
      throw new StepFailed(`pnpm skipped ${missing.join(", ")}: check the network, then run the same command again.`);
    }
    writeFileSync(stamp, wanted());
  });
}

/** Asks the registry for one small thing first: by default pnpm waits ten minutes for a missing network. */
async function requireRegistry(pnpm: (...args: string[]) => Promise<string>): Promise<void> {
  const retries = { "fetch-retries": 1, "fetch-retry-mintimeout": 1000, "fetch-retry-maxtimeout": 4000 };
  const config = Object.entries(retries).map(([name, value]) => `--config.${name}=${value}`);
  await pnpm("view", `pnpm@${pnpmVersion}`, "version", ...config);
}

/** Binaries for this platform that are in the lockfile and not in node_modules. */
function skippedBinaries(): string[] {
  const lockfile = readFileSync(join(root, "pnpm-lock.yaml"), "utf8");
  const store = join(root, "node_modules", ".pnpm");
  return platformPackages(lockfile, thisPlatform()).filter(
    (name) => !existsSync(join(store, name.replaceAll("/", "+"))),
  );
}

/** Runs `work` while no other set-up runs in this checkout; says so while it waits for one. */
export function withCheckoutLock<T>(progress: Pick<Progress, "say">, work: () => Promise<T>): Promise<T> {
  const lock = join(toolchain, "locks", `checkout-${createHash("sha256").update(root).digest("hex").slice(0, 12)}`);
  return withLock(lock, () => progress.say("another process is setting up this checkout"), work);
}

function wanted(): string {
  const files = ["pnpm-lock.yaml", "pnpm-workspace.yaml", "package.json", "test-e2e/package.json"];
  files.push(...globSync("{packages,native,apps}/*/package.json", { cwd: root }).sort());
  const hash = createHash("sha256");
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(join(root, file)));
  return hash.digest("hex");
}
