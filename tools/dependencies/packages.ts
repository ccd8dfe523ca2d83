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

/** Whether node_modules is what the lockfile and the package.json files ask for. */
export function packagesAreInstalled(): boolean {
  return existsSync(stamp) && readFileSync(stamp, "utf8") === wanted();
}

export async function installPackages(progress: Progress, pnpmFolder: string): Promise<void> {
  await withLock(
    checkoutLock(),
    () => progress.say("another set-up of this checkout is at work"),
    async () => {
      if (packagesAreInstalled()) return;
      // pnpm leaves out binaries whose `engines` do not fit the first node on the PATH: that must be ours.
      const pnpm = (...args: string[]) =>
        progress.run(join(pnpmFolder, "pnpm"), args, { cwd: root, env: variables({ pnpm: pnpmFolder }) });
      await requireRegistry(pnpm);
      const install = ["install", "--frozen-lockfile", "--config.confirmModulesPurge=false"];
      await pnpm(...install);
      if (leftOut().length > 0) {
        // pnpm takes its own word for it that all is there: only without node_modules does it look again.
        rmSync(join(root, "node_modules"), { recursive: true, force: true });
        await pnpm(...install);
      }
      const missing = leftOut();
      if (missing.length > 0) {
        throw new StepFailed(
          `pnpm left out ${missing.join(", ")}: check the network, then run the same command again.`,
        );
      }
      writeFileSync(stamp, wanted());
    },
  );
}

/** Asks for one small thing first: with its own settings pnpm waits ten minutes for a network that is not there. */
async function requireRegistry(pnpm: (...args: string[]) => Promise<string>): Promise<void> {
  const patience = { "fetch-retries": 1, "fetch-retry-mintimeout": 1000, "fetch-retry-maxtimeout": 4000 };
  const config = Object.entries(patience).map(([name, value]) => `--config.${name}=${value}`);
  await pnpm("view", `pnpm@${pnpmVersion}`, "version", ...config);
}

/** Binaries for this platform that the lockfile names and node_modules lacks. */
function leftOut(): string[] {
  const lockfile = readFileSync(join(root, "pnpm-lock.yaml"), "utf8");
  const store = join(root, "node_modules", ".pnpm");
  return platformPackages(lockfile, thisPlatform()).filter(
    (name) => !existsSync(join(store, name.replaceAll("/", "+"))),
  );
}

/** One set-up at a time works in this checkout. */
export function checkoutLock(): string {
  return join(toolchain, "locks", `checkout-${createHash("sha256").update(root).digest("hex").slice(0, 12)}`);
}

function wanted(): string {
  const files = ["pnpm-lock.yaml", "pnpm-workspace.yaml", "package.json", "test-e2e/package.json"];
  files.push(...globSync("{packages,native,apps}/*/package.json", { cwd: root }).sort());
  const hash = createHash("sha256");
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(join(root, file)));
  return hash.digest("hex");
}
