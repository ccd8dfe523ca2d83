import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const here = import.meta.dirname;
const built = join(here, "../../../native/codecs/build/libterse_codecs.a");
const python = process.env["TERSE_PYTHON"];
const why = python ? "" : " (skipped: TERSE_PYTHON does not name a Python with torch)";
const scratch = mkdtempSync(join(tmpdir(), "terse-torch-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe.skipIf(!python)(`the Python package terse_torch${why}`, () => {
  it("passes its own tests", { timeout: 600_000 }, (context) => {
    if (!existsSync(built)) context.skip("the native codecs are not built: `./terse setup`");
    const run = (command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) => {
      const { status, stdout, stderr } = spawnSync(command, args, {
        cwd: scratch,
        env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", ...env },
        encoding: "utf8",
      });
      expect(status, `${stdout}${stderr}`).toBe(0);
    };
    const library = join(scratch, "libterse_codecs.so");
    const whole = ["-Wl,--whole-archive", built, "-Wl,--no-whole-archive", "-lm"];
    run(process.env["CC"] ?? "cc", ["-shared", "-o", library, ...whole]);
    run(python!, ["-m", "unittest", "-v", "test_compensated_mean"], {
      PYTHONPATH: [here, join(here, "tests"), join(here, "../python")].join(":"),
      TERSE_CODECS_LIBRARY: library,
    });
  });
});
