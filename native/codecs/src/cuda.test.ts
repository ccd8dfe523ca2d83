import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { golden, goldenUnits, textOf } from "./testing/golden.ts";

const sources = join(import.meta.dirname, "../cuda");
const build = join(sources, "build/tests"); // not where users build the library
const minutes = 60_000;
const device = existsSync("/proc/driver/nvidia/version") || existsSync("/dev/nvidiactl");

/**
 * What CMake said when it looked for nvcc; it looks before the tests are listed, because some are skipped without one.
 */
const configured = spawnSync(
  "cmake",
  // Code that no GPU runs here need not be fast.
  ["-S", sources, "-B", build, `-DTERSE_CUDA_FAST_COMPILE=${device ? "OFF" : "ON"}`],
  { encoding: "utf8" },
);
const said = configured.stdout + configured.stderr;
const nvcc = /-- CUDA: (\/\S+) \(/.exec(said)?.[1];
const nvccMissing = process.env["TERSE_NVCC_MISSING"] ?? /-- CUDA: (.*)/.exec(said)?.[1] ?? "CMake failed";

const make = (target: string) =>
  execFileSync("cmake", ["--build", build, "--target", target, "--parallel", "2"], { encoding: "utf8", stdio: "pipe" });

/** Every codec that has a kernel beside its definition. */
const kernels = globSync("{codecs/*,vote}/*.cu", { cwd: join(import.meta.dirname, "../../../packages/codecs/src") })
  .filter((file) => basename(file) !== "check.cu")
  .map((file) => basename(dirname(file)))
  .sort();

function expectAllChecked(stdout: string): void {
  const checked = [...stdout.matchAll(/^([\w-]+) cuda (\d+) checks$/gm)];
  expect(checked.map(([, name]) => name).sort()).toEqual(kernels);
  for (const [line, , checks] of checked) expect(Number(checks), line).toBeGreaterThan(1000);
}

describe("the CUDA kernels", () => {
  beforeAll(() => expect(configured.status, said).toBe(0));

  it(
    "do what the scalar codecs do, run on the CPU with every address watched",
    () => {
      make("codecs_cuda_emulated");
      const { status, stdout, stderr } = spawnSync(join(build, "codecs_cuda_emulated"), { encoding: "utf8" });
      expect(status, stdout + stderr).toBe(0);
      expectAllChecked(stdout);
    },
    20 * minutes,
  );

  const texts = [...golden.flatMap(({ codec, cases }) => cases.map((vector) => textOf(codec, vector))), ...goldenUnits];
  const checkGolden = (program: string, input: string) =>
    spawnSync(join(build, program), ["golden"], { input, encoding: "utf8" });
  const noneDiffers = `${texts.length} golden cases, ${texts.length} comparisons, 0 different\n`;

  it(
    "write and read the golden bytes, run on the CPU",
    () => {
      make("codecs_cuda_emulated");
      expect(checkGolden("codecs_cuda_emulated", texts.join(""))).toMatchObject({ status: 0, stdout: noneDiffers });
      const other = goldenUnits.at(-1)!.replace(/^units .*$/m, (units) => units.replaceAll("3", "4"));
      expect(checkGolden("codecs_cuda_emulated", other)).toMatchObject({
        status: 1,
        stdout: expect.stringMatching(
          /l1 cuda: the sum is not the golden one|linf cuda: the sum is not the golden one/,
        ),
      });
    },
    20 * minutes,
  );

  it("have the same golden vectors where there is no Node", () => {
    const { stdout, stderr } = spawnSync("python3", [join(sources, "golden.py")], {
      encoding: "utf8",
      maxBuffer: 1 << 24,
    });
    expect(stderr).toBe("");
    expect(stdout).toBe(texts.join(""));
  });

  it.skipIf(!nvcc)(
    `compile for GPUs from Ampere to Blackwell, and the library exports what its header names${nvcc ? "" : `: ${nvccMissing}`}`,
    () => {
      make("codecs_cuda_check_program"); // and the library
      const header = readFileSync(join(sources, "../../include/terse/codecs_cuda.h"), "utf8");
      const declared = [...header.matchAll(/^TERSE_API .*?(terse_\w+)\(/gm)].map(([, name]) => name!);
      const library = join(build, "libterse_codecs_cuda.so");
      const symbols = execFileSync("nm", ["--dynamic", "--defined-only", library], { encoding: "utf8" });
      expect([...symbols.matchAll(/ T (\w+)$/gm)].map(([, name]) => name!).sort()).toEqual(declared.sort());
      // It opens where no driver is: what it needs of one it looks for itself.
      const needed = execFileSync("ldd", [library], { encoding: "utf8" });
      expect([...needed.matchAll(/^\s+(\S+)/gm)].map(([, name]) => basename(name!)).join(" ")).not.toMatch(
        /cuda|not found/,
      );
    },
    20 * minutes,
  );

  const why = !device ? ": no NVIDIA driver here" : nvcc ? "" : `: ${nvccMissing}`;
  it.skipIf(why !== "")(
    `do what the scalar codecs do on the GPU that is here${why}`,
    () => {
      make("codecs_cuda_check_program");
      const { status, stdout, stderr } = spawnSync(join(build, "codecs_cuda_check"), ["check"], { encoding: "utf8" });
      expect(status, stdout + stderr).toBe(0);
      expectAllChecked(stdout);
      expect(checkGolden("codecs_cuda_check", texts.join(""))).toMatchObject({ status: 0, stdout: noneDiffers });
    },
    20 * minutes,
  );
});
