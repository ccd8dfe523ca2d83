import { execFileSync, spawnSync } from "node:child_process";
import { globSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FakeNccl, type FakeOptions, sources } from "../testing/fake-nccl.ts";

// The program that native/collectives/checks/nccl/on-device.sh runs on a GPU without Node, here on the fake NCCL.
const fake = new FakeNccl();
const program = join(fake.folder, "nccl_check");
afterAll(() => fake[Symbol.dispose]());

beforeAll(() => {
  const collectives = join(sources, "..");
  const files = ["engines/nccl", "checks/nccl"].flatMap((folder) =>
    globSync("*.cc", { cwd: join(collectives, folder), exclude: ["torch.cc"] }).map((name) =>
      join(collectives, folder, name),
    ),
  );
  const includes = [`-I${collectives}`, `-I${join(collectives, "../include")}`];
  // Little is computed here: without optimization, and with each header read once, it compiles in a sixth of the time.
  const flags = ["-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-pthread", ...includes];
  const all = join(fake.folder, "nccl_check.cc");
  writeFileSync(all, files.map((file) => `#include "${file}"\n`).join(""));
  execFileSync(process.env["CXX"] || "c++", [...flags, "-o", program, all, "-ldl"]);
});

function check(words: readonly string[], options: FakeOptions = {}): { status: number | null; lines: string[] } {
  const { library, driver } = fake.build(options);
  const env = { ...process.env, TERSE_NCCL: library, TERSE_CUDA_DRIVER: driver };
  const { status, stdout } = spawnSync(program, words, { env, encoding: "utf8", timeout: 500_000 });
  return { status, lines: stdout.trim().split("\n").slice(2) };
}

describe("the checks of NCCL without Node", () => {
  it.each([1, 2, 3])("pass with %i ranks", (ranks) => {
    const { status, lines } = check(["threads", `${ranks}`], { progress: 2 });
    expect(lines.filter((line) => !/^ok /.test(line))).toEqual([
      `skipped rank 0 of ${ranks}: more than 2³¹ elements, on the device: TERSE_NCCL_CHECK_LARGE is not set`,
    ]);
    expect(status).toBe(0);
  });

  it("name what an older version lacks", () => {
    const without = ["ncclCommSplit", "ncclAlltoAll", "ncclCommRegister", "ncclMemAlloc", "ncclMemFree"];
    const { status, lines } = check(["threads", "2"], { version: 21800, without });
    expect(status).toBe(0);
    expect(lines).toContain("skipped rank 0 of 2: splits, on the device: this version of NCCL has no ncclCommSplit");
    expect(lines).toContain(
      "skipped rank 0 of 2: registration, on the device: this version of NCCL cannot register memory",
    );
  });

  it("fail where an operation fails", () => {
    const { status, lines } = check(["threads", "2"], { split: 3 });
    expect(status).toBe(1);
    expect(lines.at(-1)).toMatch(/^FAILED rank \d of 2: splits, on the device: split failed on rank \d: ncclCommSplit/);
  });
});
