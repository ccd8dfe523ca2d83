import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { codecNamed, codecs, codecsOfGradients } from "../src/index.ts";

const here = import.meta.dirname;
const built = join(here, "../../../native/codecs/build/libterse_codecs.a");
const python = process.env["TERSE_PYTHON"];
const why = python ? "" : " (skipped: TERSE_PYTHON does not name a Python with torch)";
const scratch = mkdtempSync(join(tmpdir(), "terse-torch-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Each codec, with parameters that it needs. */
const named = Object.keys(codecs).map((name) => {
  const needed: Record<string, Record<string, number>> = {
    "bin-means": { bits: 3 },
    count: { bits: 2 },
    "dct-top-k": { block: 16, k: 4 },
    l1: { bits: 4, block: 24 },
    linf: { bits: 3 },
    qsgd: { bits: 4 },
    "top-k": { k: 3 },
  };
  return [name, needed[name] ?? {}] as const;
});
const layouts = named.map(([name, parameters]) => [name, parameters, codecNamed(name, parameters).layout ?? null]);
const feedback = [...named, ["linf", { bits: 2 }] as const].map(([name, parameters]) => {
  const of = codecsOfGradients[name];
  return [name, parameters, !of || of.noFeedback?.(parameters) !== undefined] as const;
});

describe.skipIf(!python)(`the Python package terse_torch${why}`, () => {
  it("passes its own tests, and the program of its how-to runs", { timeout: 1_200_000 }, (context) => {
    if (!existsSync(built)) context.skip("the native codecs are not built: `./terse setup`");
    const run = (command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) => {
      const { status, stdout, stderr } = spawnSync(command, args, {
        cwd: scratch,
        env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", ...env },
        encoding: "utf8",
      });
      expect(status, `${stdout}${stderr}`).toBe(0);
      return stdout;
    };
    const library = join(scratch, "libterse_codecs.so");
    const whole = ["-Wl,--whole-archive", built, "-Wl,--no-whole-archive", "-lm"];
    run(process.env["CC"] ?? "cc", ["-shared", "-o", library, ...whole]);
    const env = {
      PYTHONPATH: [here, join(here, "tests"), join(here, "../python"), join(here, "../python/tests")].join(":"),
    };
    const modules = globSync("tests/test_*.py", { cwd: here }).map((file) => basename(file, ".py"));
    run(python!, ["-m", "unittest", "-v", ...modules.sort()], {
      ...env,
      TERSE_CODECS_LIBRARY: library,
      TERSE_CODEC_LAYOUTS: JSON.stringify(layouts),
      TERSE_CODEC_FEEDBACK: JSON.stringify(feedback),
    });

    const page = readFileSync(join(here, "../../../docs/how-to/from-pytorch.md"), "utf8");
    const [, program, printed] = page.match(/```python\n([\s\S]*?)```\s*```text\n([\s\S]*?)```/)!;
    writeFileSync(join(scratch, "train.py"), program!);
    const torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"];
    const loopback = process.platform === "darwin" ? "lo0" : "lo";
    const output = run(python!, torchrun, {
      ...env,
      TERSE_CODECS_LIBRARY: library,
      OMP_NUM_THREADS: "1",
      GLOO_SOCKET_IFNAME: loopback,
    });
    expect(output).toBe(printed);
  });
});
