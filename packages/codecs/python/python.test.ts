import { spawnSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needsPython, python } from "../src/testing/python.ts";

const here = import.meta.dirname;
const root = join(here, "../../..");
const scratch = mkdtempSync(join(tmpdir(), "terse-python-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

// What is set for other tests is not set for a user of the wheel.
const { TERSE_CODECS_LIBRARY, TERSE_IMPLEMENTATION, PYTHONPATH, ...plain } = process.env;
const quiet = { ...plain, PYTHONDONTWRITEBYTECODE: "1", PIP_DISABLE_PIP_VERSION_CHECK: "1", PIP_NO_INPUT: "1" };

function run(command: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    env: { ...quiet, ...env },
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  return { done: status === 0, stdout, output: `${stdout}${stderr}${error?.message ?? ""}` };
}

/** On a Linux with glibc, a wheel for all that have 2.17 or newer, as others read it too; PyPI takes no other. */
function expectOldGlibc(wheel: string): void {
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  if (!report.header?.glibcVersionRuntime) return;
  const machine = process.arch === "arm64" ? "aarch64" : "x86_64";
  expect(basename(wheel)).toMatch(`-py3-none-manylinux2014_${machine}.manylinux_2_17_${machine}.whl`);

  const unpacked = join(scratch, "wheel");
  run(python!, ["-m", "zipfile", "-e", wheel, unpacked], scratch);
  const { done, stdout } = run("readelf", ["--wide", "--version-info", "terse_codecs/libterse_codecs.so"], unpacked);
  if (done) {
    const minors = [...stdout.matchAll(/Name: GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor));
    expect(Math.max(...minors)).toBeLessThanOrEqual(17);
    expect(minors.length).toBe([...stdout.matchAll(/ Name: /g)].length);
  }
  if (run(python!, ["-c", "import auditwheel"], scratch).done) {
    const { output } = run(python!, ["-m", "auditwheel", "show", wheel], scratch);
    expect(output.replaceAll(/\s+/g, " ")).toContain(
      `is consistent with the following platform tag: "manylinux_2_17_${machine}"`,
    );
  }
}

describe.skipIf(!python)(`the Python package${needsPython}`, () => {
  const built = globSync("native/codecs/build/libterse_codecs.a", { cwd: root })[0];
  const library = join(scratch, "libterse_codecs.so");

  beforeAll(() => {
    if (TERSE_CODECS_LIBRARY || !built) return;
    // The addon's build has made everything but this file; the wheel's own build is tested below.
    const whole = ["-Wl,--whole-archive", join(root, built), "-Wl,--no-whole-archive", "-lm"];
    const { done, output } = run(process.env["CC"] ?? "cc", ["-shared", "-o", library, ...whole], scratch);
    expect(done, output).toBe(true);
  });

  it("passes its own tests", { timeout: 600_000 }, (context) => {
    if (!TERSE_CODECS_LIBRARY && !built) context.skip("the native codecs are not built: `./terse setup`");
    const files = globSync("tests/test_*.py", { cwd: here }).sort();
    expect(files.length).toBeGreaterThan(3);
    // In one process, which imports torch once.
    const { done, output } = run(
      python!,
      ["-m", "unittest", "-v", ...files.map((file) => basename(file, ".py"))],
      scratch,
      {
        PYTHONPATH: [here, join(here, "tests")].join(":"),
        TERSE_CODECS_LIBRARY: TERSE_CODECS_LIBRARY ?? library,
      },
    );
    expect(done, output).toBe(true);
    for (const file of files) expect(output).toMatch(new RegExp(`${basename(file, ".py")}\\.\\w+.* \\.\\.\\. ok`));
  });

  it("builds a wheel from its source distribution, which runs the README's examples from an empty folder", (context) => {
    const pips = [python!, "python3"].filter((name) => run(name, ["-m", "pip", "--version"], scratch).done);
    if (pips.length === 0) context.skip("neither TERSE_PYTHON nor python3 has pip");
    const pip = pips[0]!;
    if (!run("cmake", ["--version"], scratch).done) context.skip("cmake is not on the PATH");

    // A copy, because setuptools writes beside what it builds.
    for (const part of ["native/codecs", "native/include", "native/loops", "native/cmake", "packages/codecs"]) {
      const filter = (path: string) => !/\/(build|dist|node_modules)$/.test(path);
      cpSync(join(root, part), join(scratch, "repository", part), { recursive: true, dereference: true, filter });
    }
    const backend = join(scratch, "backend");
    const modern = "import setuptools; raise SystemExit(int(setuptools.__version__.split('.')[0]) < 77)";
    if (!run(pip, ["-c", modern], scratch).done) {
      const brought = run(pip, ["-m", "pip", "install", "--target", backend, "setuptools>=77"], scratch);
      if (!brought.done) context.skip(`setuptools cannot be had: ${brought.output.trim().split("\n").at(-1)}`);
    }
    const well = (args: string[], cwd: string, env: NodeJS.ProcessEnv = {}) => {
      const { done, stdout, output } = run(pip, args, cwd, { PYTHONPATH: backend, ...env });
      expect(done, `${args.join(" ")}:\n${output}`).toBe(true);
      return stdout;
    };

    const place = `import setuptools
from distutils.core import run_setup
print(run_setup("setup.py", stop_after="config").get_command_obj("build").build_base)`;
    const buildFolder = well(["-c", place], join(scratch, "repository/packages/codecs/python"));
    expect(buildFolder, "a build in the repository breaks ./terse check").toMatch(/^\//);

    const dist = join(scratch, "dist");
    mkdirSync(dist);
    const makeSdist = "import sys, setuptools.build_meta as backend; backend.build_sdist(sys.argv[1])";
    well(["-c", makeSdist, dist], join(scratch, "repository/packages/codecs/python"));
    const [sdist] = globSync("*.tar.gz", { cwd: dist });
    rmSync(join(scratch, "repository"), { recursive: true });
    // Not for speed: the compiler's optimizations would take most of the time.
    const compiler = join(scratch, "cc-without-optimizations");
    writeFileSync(compiler, `#!/bin/sh\nexec ${process.env["CC"] ?? "cc"} "$@" -O0\n`, { mode: 0o755 });
    well(
      ["-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", dist, join(dist, sdist!)],
      scratch,
      { CC: compiler },
    );
    const [wheel] = globSync("*.whl", { cwd: dist });
    expect(wheel).toMatch(/^terse_codecs-[\d.]+-py3-none-(?!any)[\w.]+\.whl$/);
    expectOldGlibc(join(dist, wheel!));

    const empty = join(scratch, "empty");
    well(["-m", "pip", "install", "--no-deps", "--no-index", "--target", empty, join(dist, wheel!)], scratch);
    const pages = [join(here, "README.md"), join(root, "docs/how-to/codecs-from-pytorch.md")];
    const examples = pages.flatMap((page) => [
      ...readFileSync(page, "utf8").matchAll(/```python\n((?:(?!```)[\s\S])*)```\s*```text\n([\s\S]*?)```/g),
    ]);
    expect(examples).toHaveLength(3);
    for (const [, example, printed] of examples) {
      writeFileSync(join(empty, "example.py"), `${example}\nimport terse_codecs\nprint(terse_codecs.library_path())\n`);
      const { stdout, output } = run(python!, ["example.py"], empty);
      expect(output).toBe(`${printed}${join(empty, "terse_codecs", "libterse_codecs.so")}\n`);
      expect(stdout).toBe(output);
    }
    expect(globSync("*.dist-info/licenses/LICENSE", { cwd: empty })).toHaveLength(1);
  }, 600_000);
});
