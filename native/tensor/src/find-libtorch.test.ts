import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "terse-find-")));
afterAll(() => rmSync(folder, { recursive: true }));

const finder = fileURLToPath(new URL("../../cmake/libtorch.cmake", import.meta.url));
const hasCMake = spawnSync("cmake", ["--version"]).status === 0;

/** A folder with the files of a libtorch that CMake checks before it compiles. */
function libtorch(name: string): string {
  const root = join(folder, name);
  mkdirSync(join(root, "lib"), { recursive: true });
  mkdirSync(join(root, "include", "ATen"), { recursive: true });
  writeFileSync(join(root, "lib", "libtorch_cpu.so"), "");
  return root;
}

/** A folder with a fake python3, whose torch is at `root`; undefined: it has no torch. */
function pythonWith(root: string | undefined): string {
  const bin = mkdtempSync(join(folder, "bin-"));
  writeFileSync(join(bin, "python3"), root ? `#!/bin/sh\necho ${root}\n` : "#!/bin/sh\nexit 1\n");
  chmodSync(join(bin, "python3"), 0o755);
  return bin;
}

function find(environment: Record<string, string>, python: string | undefined) {
  const script = join(folder, "find.cmake");
  writeFileSync(script, `include(${finder})\nterse_find_libtorch(root how)\nmessage("found=\${root} by=\${how}")\n`);
  const path = `${pythonWith(python)}:${process.env["PATH"]}`;
  const { status, stderr } = spawnSync("cmake", ["-P", script], {
    encoding: "utf8",
    env: { HOME: folder, PATH: path, ...environment },
  });
  return { status, output: stderr.replace(/\s+/g, " ").trim() };
}

describe.skipIf(!hasCMake)(`the build finds libtorch${hasCMake ? "" : " (skipped: cmake is not installed)"}`, () => {
  const toolchain = join(folder, "toolchain");
  libtorch("toolchain/libtorch-2.9.1/torch");
  const newest = libtorch("toolchain/libtorch-2.13.0/torch");
  const installed = libtorch("site-packages/torch");
  const own = libtorch("own");

  it("in LIBTORCH first, through links", () => {
    symlinkSync(own, join(folder, "link"));
    expect(find({ LIBTORCH: join(folder, "link"), TERSE_TOOLCHAIN: toolchain }, installed).output).toBe(
      `found=${own} by=LIBTORCH`,
    );
  });

  it("else in python3", () => {
    expect(find({ LIBTORCH: "", TERSE_TOOLCHAIN: toolchain }, installed).output).toBe(`found=${installed} by=python3`);
  });

  it("else in the toolchain folder, the newest by version number", () => {
    expect(find({ TERSE_TOOLCHAIN: toolchain }, undefined).output).toBe(`found=${newest} by=the toolchain folder`);
    mkdirSync(join(folder, ".cache"));
    symlinkSync(toolchain, join(folder, ".cache", "terse"));
    expect(find({}, undefined).output).toBe(`found=${newest} by=the toolchain folder`);
  });

  it("and fails if LIBTORCH is not a libtorch, although there are others", () => {
    const { status, output } = find({ LIBTORCH: "/nowhere", TERSE_TOOLCHAIN: toolchain }, installed);
    expect(status).not.toBe(0);
    expect(output).toContain("LIBTORCH is /nowhere, which has no lib/libtorch_cpu.so");
  });

  it("or names the three ways to provide it", () => {
    const { status, output } = find({ TERSE_TOOLCHAIN: join(folder, "empty") }, undefined);
    expect(status).not.toBe(0);
    for (const way of ["LIBTORCH=", "pip install torch", "./terse setup"]) expect(output).toContain(way);
  });
});
