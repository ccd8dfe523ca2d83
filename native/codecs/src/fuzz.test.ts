import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const run = (command: string, words: string[], cwd = root) =>
  spawnSync(command, words, { cwd, encoding: "utf8", maxBuffer: 1 << 28 });

// -O1 runs as fast under the sanitizers as -O2, and compiles in half the time.
const sanitize = "-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined";
const noSanitizers = whyNoSanitizers();

/** Why this machine's compiler has none; "" where it has. */
function whyNoSanitizers(): string {
  if (run("cmake", ["--version"]).error) return " (skipped: there is no cmake on the path)";
  const probe = spawnSync("cc", [...sanitize.split(" "), "-x", "c", "-", "-o", "/dev/null"], {
    input: "int main(void) { return 0; }",
  });
  return probe.status === 0 ? "" : " (skipped: this machine's C compiler has no address and undefined sanitizers)";
}

describe.skipIf(noSanitizers)(`the C library, sanitizers watching${noSanitizers}`, () => {
  // The build stays, so that the next run compiles what changed.
  const build = "build/sanitized";

  beforeAll(() => {
    for (const words of [
      ["-S", ".", "-B", build, "-DCMAKE_BUILD_TYPE=None", `-DCMAKE_C_FLAGS=${sanitize}`],
      ["--build", build, "--parallel", "2", "--target", "codecs_mutate", "codecs_check"],
    ]) {
      const { status, stdout, stderr } = run("cmake", words);
      expect(status, stdout + stderr).toBe(0);
    }
  }, 900_000);

  it("reads 100 000 mutated frames and makes many odd calls", () => {
    const { status, stdout, stderr } = run(join(root, build, "Release/codecs_mutate"), ["100000"]);
    expect(status, stdout + stderr).toBe(0);
    // Mutations that all fail at the first check would prove nothing.
    for (const sentence of [
      "All is well",
      "not a frame",
      "another version",
      "cut short",
      "damaged",
      "no writer writes",
    ])
      expect(stdout).toMatch(new RegExp(`^ +\\d{2,}  .*${sentence}`, "m"));
    expect(stdout).toMatch(/^100000 mutations of \d+ frames$/m);
  });

  it("does in every implementation what the scalar one does", () => {
    const { status, stdout, stderr } = run(join(root, build, "Release/codecs_check"), ["--few-lengths"]);
    expect(status, stdout + stderr).toBe(0);
  }, 900_000);
});

describe("libFuzzer", () => {
  it("finds nothing in some seconds, where there is a clang with it", ({ skip }) => {
    const { status, stdout, stderr } = run(join(root, "fuzz/run"), ["frame", "-max_total_time=5"]);
    if (status === 77) skip(stdout.trim());
    expect(status, stdout + stderr).toBe(0);
    expect(Number(stderr.match(/number_of_executed_units: (\d+)/)?.[1])).toBeGreaterThan(1000);
  }, 900_000);
});
