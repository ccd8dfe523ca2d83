import { spawnSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { python } from "./python.ts";

const root = join(import.meta.dirname, "../../../..");

// What is set for other tests is not set for a user of the wheel.
const { TERSE_CODECS_LIBRARY, TERSE_LION_LIBRARY, TERSE_IMPLEMENTATION, PYTHONPATH, ...plain } = process.env;
const quiet = { ...plain, PYTHONDONTWRITEBYTECODE: "1", PIP_DISABLE_PIP_VERSION_CHECK: "1", PIP_NO_INPUT: "1" };

export function run(command: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    env: { ...quiet, ...env },
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  return { done: status === 0, stdout, output: `${stdout}${stderr}${error?.message ?? ""}` };
}

export function well(command: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): string {
  const { done, stdout, output } = run(command, args, cwd, env);
  expect(done, `${args.join(" ")}:\n${output}`).toBe(true);
  return stdout;
}

/** A Python with pip, and the environment in which it has a setuptools that builds these packages. */
export function pythonThatBuilds(scratch: string, skip: (why: string) => never) {
  const pip = [python!, "python3"].find((name) => run(name, ["-m", "pip", "--version"], scratch).done);
  if (!pip) return skip("neither TERSE_PYTHON nor python3 has pip");
  const backend = join(scratch, "backend");
  const env = { PYTHONPATH: backend };
  const modern = "import setuptools; raise SystemExit(int(setuptools.__version__.split('.')[0]) < 77)";
  if (!run(pip, ["-c", modern], scratch, env).done) {
    const brought = run(pip, ["-m", "pip", "install", "--target", backend, "setuptools>=77"], scratch);
    if (!brought.done) skip(`setuptools cannot be had: ${brought.output.trim().split("\n").at(-1)}`);
  }
  return { pip, env };
}

/** A wheel of packages/codecs/<folder>, built from its source distribution, and how it is installed in a folder. */
export function buildWheel(folder: string, scratch: string, skip: (why: string) => never) {
  const { pip, env } = pythonThatBuilds(scratch, skip);
  if (!run("cmake", ["--version"], scratch).done) skip("cmake is not on the PATH");

  // A copy, because setuptools writes beside what it builds.
  const repository = join(scratch, "repository");
  const shared = ["native/include", "native/loops", "native/cmake"];
  for (const part of ["native/codecs", "native/optimizers", ...shared, "packages/codecs"]) {
    const filter = (path: string) => !/\/(build|dist|node_modules)$/.test(path);
    cpSync(join(root, part), join(repository, part), { recursive: true, dereference: true, filter });
  }
  const sources = join(repository, "packages/codecs", folder);
  const place = `import setuptools
from distutils.core import run_setup
print(run_setup("setup.py", stop_after="config").get_command_obj("build").build_base)`;
  expect(well(pip, ["-c", place], sources, env), "a build in the repository breaks ./terse check").toMatch(/^\//);

  const dist = join(scratch, "dist");
  mkdirSync(dist);
  const makeSdist = "import sys, setuptools.build_meta as backend; backend.build_sdist(sys.argv[1])";
  well(pip, ["-c", makeSdist, dist], sources, env);
  const [sdist] = globSync("*.tar.gz", { cwd: dist });
  rmSync(repository, { recursive: true });
  // Not for speed: the compiler's optimizations would take most of the time.
  const compiler = join(scratch, "cc-without-optimizations");
  writeFileSync(compiler, `#!/bin/sh\nexec ${process.env["CC"] ?? "cc"} "$@" -O0\n`, { mode: 0o755 });
  const build = ["-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", dist];
  well(pip, [...build, join(dist, sdist!)], scratch, { ...env, CC: compiler });
  const wheel = join(dist, globSync("*.whl", { cwd: dist })[0]!);
  const install = ["-m", "pip", "install", "--no-deps", "--no-index", "--target"];
  return { wheel, installIn: (target: string) => well(pip, [...install, target, wheel], scratch, env) };
}
