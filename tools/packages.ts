import { createHash } from "node:crypto";
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "./lock.ts";
import type { Progress } from "./steps.ts";
import { root, toolchain } from "./toolchain.ts";

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
      // pnpm's own settings wait ten minutes for a network that is not there.
      const patience = { "fetch-retries": 1, "fetch-retry-mintimeout": 1000, "fetch-retry-maxtimeout": 4000 };
      const config = Object.entries({ ...patience, confirmModulesPurge: false }).map(
        ([name, value]) => `--config.${name}=${value}`,
      );
      await progress.run(join(pnpmFolder, "pnpm"), ["install", "--frozen-lockfile", ...config], { cwd: root });
      writeFileSync(stamp, wanted());
    },
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
