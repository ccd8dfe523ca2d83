import { spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../toolchain.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { vitestArguments } from "./vitest-arguments.ts";

/** Runs vitest for real on these files, as ./terse test does. */
export function runTests(
  files: Record<string, string>,
  variables: Record<string, string> = {},
): { status: number | null; lines: string[]; errors: string } {
  const folder = scratchFolder();
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(join(root, "node_modules", "vitest"), join(folder, "node_modules", "vitest"));
  const setupFiles = [join(root, "tools", "testing", "worker-setup.ts")];
  writeFileSync(join(folder, "vitest.config.mjs"), `export default { test: ${JSON.stringify({ setupFiles })} };\n`);
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(folder, name), `import { it, describe, beforeAll } from "vitest";\n${text}`);
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST"));
  const { status, stdout, stderr } = spawnSync(process.execPath, [vitest, ...vitestArguments], {
    cwd: folder,
    env: { ...Object.fromEntries(inherited), ...variables },
    encoding: "utf8",
    timeout: 200_000,
  });
  return { status, lines: stdout.trimEnd().split("\n"), errors: stderr };
}
