import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needsPython, python } from "../src/testing/python.ts";
import { buildWheel, pythonThatBuilds, run, well } from "../src/testing/python-wheel.ts";

const here = import.meta.dirname;
const root = join(here, "../../..");
const scratch = mkdtempSync(join(tmpdir(), "terse-python-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

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
  const named = process.env["TERSE_CODECS_LIBRARY"];

  beforeAll(() => {
    if (named || !built) return;
    // The addon's build has made everything but this file; the wheel's own build is tested below.
    const whole = ["-Wl,--whole-archive", join(root, built), "-Wl,--no-whole-archive", "-lm"];
    const { done, output } = run(process.env["CC"] ?? "cc", ["-shared", "-o", library, ...whole], scratch);
    expect(done, output).toBe(true);
  });

  it("passes its own tests", { timeout: 600_000 }, (context) => {
    if (!named && !built) context.skip("the native codecs are not built: `./terse setup`");
    const files = globSync("tests/test_*.py", { cwd: here }).sort();
    expect(files.length).toBeGreaterThan(3);
    // In one process, which imports torch once.
    const { done, output } = run(
      python!,
      ["-m", "unittest", "-v", ...files.map((file) => basename(file, ".py"))],
      scratch,
      {
        PYTHONPATH: [here, join(here, "tests")].join(":"),
        PYTHONDONTWRITEBYTECODE: "", // of what stays in its place; vitest.config.ts says where it goes
        TERSE_CODECS_LIBRARY: named ?? library,
      },
    );
    expect(done, output).toBe(true);
    for (const file of files) expect(output).toMatch(new RegExp(`${basename(file, ".py")}\\.\\w+.* \\.\\.\\. ok`));
  });

  it("builds a wheel from its source distribution, which runs the README's examples from an empty folder", (context) => {
    const { wheel, installIn } = buildWheel("python", scratch, context.skip);
    expect(basename(wheel)).toMatch(/^terse_codecs-[\d.]+-py3-none-(?!any)[\w.]+\.whl$/);
    expectOldGlibc(wheel);

    const empty = join(scratch, "empty");
    installIn(empty);
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

  it("says what a build needs where CMake fails", (context) => {
    const { pip, env } = pythonThatBuilds(scratch, context.skip);
    const codecs = join(scratch, "failing/packages/codecs");
    cpSync(here, join(codecs, "python"), { recursive: true });
    cpSync(join(here, "../package.json"), join(codecs, "package.json"));
    writeFileSync(join(codecs, "cmake"), "#!/bin/sh\necho No CMAKE_C_COMPILER could be found. >&2\nexit 1\n", {
      mode: 0o755,
    });
    const build = "import sys, setuptools.build_meta as backend; backend.build_wheel(sys.argv[1])";
    const path = { PATH: `${codecs}:${process.env["PATH"]}` };
    const { done, output } = run(pip, ["-c", build, codecs], join(codecs, "python"), { ...env, ...path });
    expect(done).toBe(false);
    expect(output).toContain("No CMAKE_C_COMPILER could be found.");
    expect(output).toMatch(/terse-codecs: CMake has not built libterse_codecs\.\w+, and says above why. It needs a C/);
    expect(output).not.toContain("Traceback");
  }, 600_000);

  it("is installed editably: the sources run where they are, with the library beside them", (context) => {
    if (!named && !built) context.skip("the native codecs are not built: `./terse setup`");
    const { pip, env } = pythonThatBuilds(scratch, context.skip);
    const codecs = join(scratch, "editable/packages/codecs");
    cpSync(here, join(codecs, "python"), { recursive: true, filter: (path) => !path.endsWith(".so") });
    cpSync(join(here, "../package.json"), join(codecs, "package.json"));
    // What CMake compiles has been compiled.
    const made = `#!/bin/sh\n[ "$1" != --build ] || { mkdir -p "$2" && cp "${named ?? library}" "$2/libterse_codecs.so"; }\n`;
    writeFileSync(join(scratch, "cmake"), made, { mode: 0o755 });
    const path = { PATH: `${scratch}:${process.env["PATH"]}` };
    const wheels = join(scratch, "editable/wheels");
    mkdirSync(wheels);
    const build = "import sys, setuptools.build_meta as backend; backend.build_editable(sys.argv[1])";
    well(pip, ["-c", build, wheels], join(codecs, "python"), { ...env, ...path });
    const [wheel] = globSync("*.whl", { cwd: wheels });
    const site = join(scratch, "editable/site");
    well(pip, ["-m", "zipfile", "-e", join(wheels, wheel!), site], scratch);
    const ask =
      "import site, sys; site.addsitedir(sys.argv[1]); import terse_codecs; print(terse_codecs.library_path())";
    expect(well(pip, ["-c", ask, site], scratch)).toBe(`${join(codecs, "python/terse_codecs/libterse_codecs.so")}\n`);
  }, 600_000);
});
