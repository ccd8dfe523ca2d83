import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { golden, textOf } from "./testing/golden.ts";

// On an ARM machine its own compiler, and nothing emulated; elsewhere a cross compiler, and QEMU for its programs.
const onArm = process.arch === "arm64";
const compiler = process.env["TERSE_ARM_COMPILER"] || onPath(onArm ? ["cc"] : ["aarch64-linux-gnu-gcc"]);
const emulator = process.env["TERSE_ARM_EMULATOR"] || onPath(["qemu-aarch64", "qemu-aarch64-static"]);
const runs = onArm || emulator !== undefined;

const without = (program: string, debian: string) =>
  ` (skipped: no ${program}: ${process.env["TERSE_ARM_MISSING"] ?? `./terse test brings it, as does apt-get install ${debian}`})`;
const toCompile = !onPath(["cmake"])
  ? " (skipped: no cmake: apt-get install cmake)"
  : !compiler
    ? without("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
    : isAbsolute(execFileSync(compiler, ["-print-file-name=libc.a"], { encoding: "utf8" }).trim())
      ? ""
      : ` (skipped: ${compiler} has no libc.a: apt-get install libc6-dev-arm64-cross)`;
const toRun = toCompile || (runs ? "" : without("qemu-aarch64", "qemu-user"));

describe.skipIf(toCompile)(`on ARM${toCompile}`, () => {
  let folder: string;
  const cmake = (...words: string[]) =>
    execFileSync("cmake", words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "terse-arm-"));
    const machine = onArm
      ? {}
      : { CMAKE_SYSTEM_NAME: "Linux", CMAKE_SYSTEM_PROCESSOR: "aarch64", CMAKE_C_COMPILER: compiler };
    // Static, so that it needs no library of the other machine's.
    const settings = { ...machine, CMAKE_BUILD_TYPE: "Release", CMAKE_EXE_LINKER_FLAGS: "-static" };
    const given = Object.entries(settings).map(([name, value]) => `-D${name}=${value}`);
    cmake("-S", join(import.meta.dirname, ".."), "-B", folder, ...given);
    cmake("--build", folder, "--target", "codecs_check");
  }, 600_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function check(args: string[], input = "") {
    const [command, ...words] = [...(onArm ? [] : [emulator!]), join(folder, "Release/codecs_check"), ...args];
    return spawnSync(command!, words, { input, encoding: "utf8" });
  }

  it("compiles", () => {
    expect(existsSync(join(folder, "Release/codecs_check"))).toBe(true);
  });

  it.skipIf(!runs)(
    `all do in NEON what they do in plain C${toRun}`,
    () => {
      const { status, stdout, stderr } = check([...(onArm ? [] : ["--few-lengths"]), "neon"]);
      expect(status, stdout + stderr).toBe(0);
      const checked = [...stdout.matchAll(/^([\w-]+) neon \d{4,} checks$/gm)].map(([, name]) => name!);
      expect(checked.sort()).toEqual(golden.map(({ codec }) => codec).sort());
      expect(stdout).toMatch(/^reductions by neon: \d{4,} checks$/m);
      expect(stdout).toMatch(/^random words by neon: \d{4,} checks$/m);
    },
    600_000,
  );

  it.skipIf(!runs)(
    `all give the golden bytes${toRun}`,
    () => {
      const texts = golden.flatMap(({ codec, cases }) => cases.map((vector) => textOf(codec, vector)));
      const { status, stdout, stderr } = check(["--vectors"], texts.join(""));
      const [, compared, comparisons] = stdout.match(/(\d+) golden cases, (\d+) comparisons, 0 different/) ?? [];
      expect(Number(compared), stdout + stderr).toBe(texts.length);
      expect(Number(comparisons)).toBeGreaterThan(texts.length); // by NEON and by plain C
      expect(status).toBe(0);
    },
    600_000,
  );
});

function onPath(names: readonly string[]): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  return globSync(folders.flatMap((folder) => names.map((name) => join(folder, name))))[0];
}
