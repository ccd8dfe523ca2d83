import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { codecNamed, codecsOfGradients } from "../src/index.ts";
import { goldenFrames } from "../src/testing/golden-frames.ts";
import { python } from "../src/testing/python.ts";
import { buildWheel, run, well } from "../src/testing/python-wheel.ts";

const here = import.meta.dirname;
const native = join(here, "../../../native");
const built = {
  TERSE_CODECS_LIBRARY: join(native, "codecs/build/libterse_codecs.a"),
  TERSE_LION_LIBRARY: join(native, "optimizers/build/liboptimizers_kernels.a"),
};
const why = python ? "" : " (skipped: TERSE_PYTHON does not name a Python with torch)";
const scratch = mkdtempSync(join(tmpdir(), "terse-torch-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** The ways in which golden frames use each codec, but for segments, which are of one length. */
const ways = goldenFrames().filter(({ parameters }) => !parameters.segments);
const layouts = ways.map(({ codec, parameters }) => [codec, parameters, codecNamed(codec, parameters).layout ?? null]);
const feedback = ways.flatMap(({ codec, parameters }) => {
  const of = codecsOfGradients[codec];
  const refused = !of || of.noFeedback?.(parameters) !== undefined;
  const isOfGradients = Object.keys(parameters).every((name) => of?.chosen?.[name]);
  return !of || isOfGradients ? [[codec, parameters, refused] as const] : [];
});

/** A fresh environment with the wheel, and with a way to PyTorch, which is not installed anew. */
function environmentWith({ installIn }: ReturnType<typeof buildWheel>) {
  const environment = join(scratch, "environment");
  well(python!, ["-m", "venv", "--without-pip", environment], scratch);
  const fresh = join(environment, "bin/python");
  const ask = (of: string, question: string) => well(of, ["-c", question], scratch).trim();
  const packages = ask(fresh, "import sysconfig; print(sysconfig.get_path('purelib'))");
  installIn(packages);
  const ofTorch = ask(python!, "import torch, pathlib; print(pathlib.Path(torch.__file__).parent.parent)");
  writeFileSync(join(packages, "torch.pth"), `${ofTorch}\n`);
  return { fresh, packages };
}

describe.skipIf(!python)(`the Python package terse_torch${why}`, () => {
  it("passes its own tests", { timeout: 1_200_000 }, (context) => {
    const libraries: NodeJS.ProcessEnv = {};
    for (const [name, archive] of Object.entries(built)) {
      if (!existsSync(archive)) context.skip("the native code is not built: `./terse setup`");
      libraries[name] = join(scratch, `${name}.so`);
      const whole = ["-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", "-lm"];
      well(process.env["CC"] ?? "cc", ["-shared", "-o", libraries[name], ...whole], scratch);
    }
    const modules = globSync("tests/test_*.py", { cwd: here }).map((file) => basename(file, ".py"));
    well(python!, ["-m", "unittest", "-v", ...modules.sort()], scratch, {
      PYTHONPATH: [here, join(here, "tests"), join(here, "../python"), join(here, "../python/tests")].join(":"),
      PYTHONDONTWRITEBYTECODE: "", // of what stays in its place; vitest.config.ts says where it goes
      ...libraries,
      TERSE_CODEC_LAYOUTS: JSON.stringify(layouts),
      TERSE_CODEC_FEEDBACK: JSON.stringify(feedback),
    });
  });

  it("has a wheel with which the program of its how-to runs in a fresh environment, without terse-codecs beside it", {
    timeout: 1_200_000,
  }, (context) => {
    const wheel = buildWheel("torch", scratch, context.skip);
    expect(basename(wheel.wheel)).toMatch(/^terse_torch-[\d.]+-py3-none-(?!any)[\w.]+\.whl$/);
    const { fresh, packages } = environmentWith(wheel);

    const page = readFileSync(join(here, "../../../docs/how-to/from-pytorch.md"), "utf8");
    const [, program, printed] = page.match(/```python\n([\s\S]*?)```\s*```text\n([\s\S]*?)```/)!;
    const whose = `import os, terse_codecs, terse_torch._lion_library
if os.environ["RANK"] == "0":
    print(terse_codecs.library_path(), terse_torch._lion_library.loaded().path)
`;
    writeFileSync(join(scratch, "train.py"), `${whose}${program}`);
    const torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"];
    const loopback = process.platform === "darwin" ? "lo0" : "lo";
    const output = well(fresh, torchrun, scratch, { OMP_NUM_THREADS: "1", GLOO_SOCKET_IFNAME: loopback });
    const files = ["terse_codecs/libterse_codecs.so", "terse_torch/libterse_lion.so"];
    expect(output).toBe(`${files.map((file) => join(packages, file)).join(" ")}\n${printed}`);

    const beside = join(packages, "terse_codecs-0.0.1.dist-info");
    mkdirSync(beside);
    writeFileSync(join(beside, "METADATA"), "Metadata-Version: 2.1\nName: terse-codecs\nVersion: 0.0.1\n");
    const refusal = () => run(fresh, ["-c", "import terse_torch"], scratch).output;
    expect(refusal()).toContain("ImportError: terse-torch has terse_codecs in it, and terse-codecs is installed too");
    for (const removed of [beside, join(packages, "terse_codecs")]) rmSync(removed, { recursive: true });
    expect(refusal()).toContain("ImportError: terse_codecs, which came with terse-torch, is gone");
  });
});
