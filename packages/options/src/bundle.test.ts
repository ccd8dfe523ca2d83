import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { expect, it } from "vitest";
import config from "../tsup.config.ts";

it("runs in an ES module that esbuild makes for Node, as in programs that take collectives or optimizers", async () => {
  const folder = mkdtempSync(join(tmpdir(), "terse-options-bundle-"));
  const forNode = { bundle: true, platform: "node", format: "esm", logLevel: "silent" } as const;
  const { entry, splitting } = config as { entry: string[]; splitting: boolean };
  const packageFolder = join(import.meta.dirname, "..");
  try {
    const dist = join(folder, "options/dist");
    const published = { entryPoints: entry, splitting, outdir: dist, packages: "external" } as const;
    await build({ ...forNode, ...published, absWorkingDir: packageFolder });
    writeFileSync(join(folder, "options/package.json"), `{ "type": "module", "sideEffects": false }`);
    const program = `import { choose } from "./options/dist/index.js"; console.log(choose("engine", "tcp", { tcp: 1 }));`;
    writeFileSync(join(folder, "program.mjs"), program);
    const outfile = join(folder, "bundle.mjs");
    const nodePaths = [join(packageFolder, "node_modules")];
    await build({ ...forNode, entryPoints: [join(folder, "program.mjs")], outfile, nodePaths });
    expect(execFileSync(process.execPath, [outfile], { encoding: "utf8", stdio: "pipe" })).toBe("1\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
