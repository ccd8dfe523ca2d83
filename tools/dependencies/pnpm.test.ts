import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { run } from "../run.ts";
import { scratchFolder } from "../testing/scratch-folder.ts";
import { which } from "../which.ts";
import { npmInstall } from "./pnpm.ts";

const progress = { run, say: () => {} };
const npm = which("npm");
const why = npm === undefined ? " (skipped: there is no npm on the path)" : "";

const settings = {
  "bin-links": "false",
  cpu: "s390x",
  "dry-run": "true",
  "install-links": "true", // folders are installed as packages of the registry are
  libc: "musl",
  location: "global",
  omit: "optional",
  os: "win32",
  "package-lock-only": "true",
  workspaces: "true",
};

it.skipIf(why)(`npm installs commands and optional parts, whatever else is set${why}`, async () => {
  const folder = scratchFolder();
  const write = (name: string, more: object) => {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, "package.json"), JSON.stringify({ name, version: "1.0.0", ...more }));
  };
  write("part", { os: ["linux"], cpu: [process.arch], libc: ["glibc"] });
  write("probe", { bin: "./probe.js", optionalDependencies: { part: `file:${join(folder, "part")}` } });
  writeFileSync(join(folder, "probe", "probe.js"), "#!/usr/bin/env node\n");
  writeFileSync(
    join(folder, "npmrc"),
    Object.entries(settings)
      .map(([key, value]) => `${key}=${value}\n`)
      .join(""),
  );
  vi.stubEnv("NPM_CONFIG_USERCONFIG", join(folder, "npmrc"));
  vi.stubEnv("NPM_CONFIG_PREFIX", join(folder, "global"));
  vi.stubEnv("npm_config_workspace", "elsewhere");
  try {
    const target = join(folder, "target");
    mkdirSync(target);
    await npmInstall(progress, npm!, target, join(folder, "probe"));
    const files = [".bin/probe", "part", "probe"];
    expect(files.filter((file) => !existsSync(join(target, "node_modules", file)))).toEqual([]);
  } finally {
    vi.unstubAllEnvs();
  }
});
