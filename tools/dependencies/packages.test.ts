import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it, vi } from "vitest";
import { run } from "../run.ts";
import { scratchFolder } from "../testing/scratch-folder.ts";
import { layout } from "./packages.ts";
import { findPnpm } from "./pnpm.ts";

const settings = {
  dev: false,
  enable_global_virtual_store: true,
  modules_dir: "elsewhere",
  node_linker: "hoisted",
  optional: false,
  symlink: false,
  virtual_store_dir: "store",
};

it("pnpm lays out node_modules as this repository needs it, whatever else is set", async () => {
  const folder = scratchFolder();
  const write = (file: string, content: string) => {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), content);
  };
  write("tool/package.json", JSON.stringify({ name: "tool", version: "1.0.0" }));
  write("part/package.json", JSON.stringify({ name: "part", version: "1.0.0" }));
  write("pnpm-workspace.yaml", "packages: [member]\npmOnFail: ignore\n");
  write("package.json", JSON.stringify({ name: "root", private: true }));
  const needs = { devDependencies: { tool: "file:../tool" }, optionalDependencies: { part: "file:../part" } };
  write("member/package.json", JSON.stringify({ name: "member", private: true, ...needs }));
  for (const [name, value] of Object.entries(settings)) vi.stubEnv(`pnpm_config_${name}`, String(value));
  try {
    const options = ["--offline", `--config.store-dir=${join(folder, "packages")}`];
    await run(join(findPnpm()!, "pnpm"), ["install", ...options, ...layout], { cwd: folder });
    const files = ["member/node_modules/tool", "member/node_modules/part", "node_modules/.pnpm/lock.yaml"];
    expect(files.filter((file) => !existsSync(join(folder, file)))).toEqual([]);
  } finally {
    vi.unstubAllEnvs();
  }
});
