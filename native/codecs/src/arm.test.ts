import { execFileSync, spawnSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EncodeCall, Parameters } from "./index.ts";

// On an ARM machine its own compiler, and nothing emulated; elsewhere a cross compiler, and QEMU for its programs.
const onArm = process.arch === "arm64";
const compiler = process.env["TERSE_ARM_COMPILER"] || onPath(onArm ? ["cc"] : ["aarch64-linux-gnu-gcc"]);
const emulator = process.env["TERSE_ARM_EMULATOR"] || onPath(["qemu-aarch64", "qemu-aarch64-static"]);
const runs = onArm || emulator !== undefined;

const without = (program: string, debian: string) =>
  ` (skipped: no ${program}: ${process.env["TERSE_ARM_MISSING"] ?? `./terse test brings it, as does apt-get install ${debian}`})`;
const toCompile = !compiler
  ? without("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
  : isAbsolute(execFileSync(compiler, ["-print-file-name=libc.a"], { encoding: "utf8" }).trim())
    ? ""
    : ` (skipped: ${compiler} has no libc.a: apt-get install libc6-dev-arm64-cross)`;
const toRun = toCompile || (runs ? "" : without("qemu-aarch64", "qemu-user"));

const native = join(import.meta.dirname, "..");
const codecs = join(native, "../../packages/codecs/src");
const cmake = readFileSync(join(native, "CMakeLists.txt"), "utf8");
const library = /set\(SOURCES ([^$)]+?) \$\{SCALAR\}\)/.exec(cmake)![1]!.split(" ");
const kernels = globSync("*/*.c", { cwd: codecs }).filter((file) => !/_avx\w*\.c$/.test(file));

describe.skipIf(toCompile)(`on ARM${toCompile}`, () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "terse-arm-"));
    compile(["-c", ...library.map((file) => join(native, file)), ...kernels.map((file) => join(codecs, file))]);
  }, 600_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const flags = [
    "-std=c11",
    "-O2",
    "-DNDEBUG",
    "-Wall",
    "-Wextra",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-pthread",
    `-I${join(native, "../include")}`,
  ];
  const compile = (args: readonly string[]) => execFileSync(compiler!, [...flags, ...args], { cwd: folder });

  /** The library and some more files; static, so that it needs no library of the other machine's. */
  function built(...program: [string, ...string[]]): string {
    const output = join(folder, program[0].replace(".c", ""));
    const sources = program.map((file) => join(native, file));
    compile([...sources, ...globSync("*.o", { cwd: folder }), "-static", "-lm", "-o", output]);
    return output;
  }

  function run(
    program: string,
    args: readonly string[] = [],
    input = "",
  ): { status: number | null; stdout: string; stderr: string } {
    const [command, ...all] = [...(onArm ? [] : [emulator!]), program, ...args];
    return spawnSync(command!, all, { input, encoding: "utf8", maxBuffer: 1 << 28 });
  }

  it("compiles", () => {
    expect(globSync("*_neon.o", { cwd: folder }).length).toBeGreaterThan(1);
  });

  it.skipIf(!runs)(
    `all do in NEON what they do in plain C${toRun}`,
    () => {
      const { status, stdout, stderr } = run(built("check.c", "check_vectors.c"), ["neon"]);
      expect(status, stdout + stderr).toBe(0);
      expect(stdout).toMatch(/^sign neon \d{4,} checks$/m);
      expect(stdout).toMatch(/^vote neon \d{4,} checks$/m);
    },
    600_000,
  );

  it.skipIf(!runs)(
    `give the golden bytes${toRun}`,
    () => {
      const golden = goldenVectors();
      const { status, stdout, stderr } = run(
        built("golden.c"),
        [],
        golden.map(({ request }) => `${request}\n`).join(""),
      );
      expect(stderr).toBe("");
      expect(status).toBe(0);
      const answers = stdout.split("\n\n").slice(0, -1);
      expect(answers.length).toBe(golden.length);
      golden.forEach(({ request, answer }, i) => {
        const lines = answers[i]!.split("\n");
        expect(lines.length, request).toBeGreaterThan(0);
        for (const line of lines) expect(line, request).toMatch(/^\w+ x/);
        expect(new Set(lines.map((line) => line.slice(line.indexOf(" ") + 1))), request).toEqual(new Set([answer]));
      });
      const implementations = new Set(answers.flatMap((each) => each.split("\n").map((line) => line.split(" ")[0])));
      expect(implementations).toEqual(new Set(["neon", "scalar"]));
    },
    600_000,
  );
});

interface CodecCase {
  parameters: Parameters;
  call: Omit<EncodeCall, "hold"> & { hold?: string };
  x: number[];
  wire: string;
  scale: number;
  sum: number[];
}

interface VoteCase {
  n: number;
  votes: (string | null)[];
  majorityPlus: string;
  majorityMinus: string;
  plus: string;
  nonzero: string;
  planes: string[];
}

/** Every codec's vectors, as golden.c reads and answers them. */
function goldenVectors(): { request: string; answer: string }[] {
  return globSync("*/vectors.json", { cwd: codecs }).flatMap((file) => {
    const { cases }: { cases: (CodecCase | VoteCase)[] } = JSON.parse(readFileSync(join(codecs, file), "utf8"));
    return cases.map((each) => ("votes" in each ? goldenVote(each) : goldenCodec(dirname(file), each)));
  });
}

function goldenCodec(name: string, { parameters: p, call, x, wire, scale, sum }: CodecCase) {
  const levels = ["uniform", "without-zero", "logarithmic"].indexOf(p.levels ?? "uniform");
  const shape = [p.bits, p.width, p.ranks, Number(p.unscaled ?? false), levels, p.dimensions, p.block, p.k, p.clip];
  const zero = [undefined, "minus", "plus"].indexOf(call.zero);
  const numbers = [...shape, zero, call.seed, call.step, call.index].map((value) => value ?? 0);
  let end = 0;
  const ends = (p.segments ?? []).map((length) => {
    end += length;
    return end;
  });
  const hold = call.hold === undefined ? "-" : `x${call.hold}`;
  return {
    request: ["codec", name, ...numbers, scale, hold, floats(x), ends.length, ...ends].join(" "),
    answer: `x${wire} ${floats(sum)}`,
  };
}

function goldenVote({ n, votes, majorityPlus, majorityMinus, plus, nonzero, planes }: VoteCase) {
  const wires = votes.map((wire) => (wire === null ? "-" : `x${wire}`));
  return {
    request: ["vote", n, votes.length, ...wires].join(" "),
    answer: [majorityPlus, majorityMinus, plus, nonzero, ...planes].map((wire) => `x${wire}`).join(" "),
  };
}

const floats = (x: readonly number[]): string => `x${Buffer.from(new Float32Array(x).buffer).toString("hex")}`;

function onPath(names: readonly string[]): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  return globSync(folders.flatMap((folder) => names.map((name) => join(folder, name))))[0];
}
