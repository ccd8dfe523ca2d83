import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { addressOf } from "./index.ts";
import { choose, open } from "./kernels.ts";

const root = `${import.meta.dirname}/..`;
const addon = open();

describe("the optimizer kernels", () => {
  it("all give the bits of the scalar implementation", () => {
    const { status, stdout, stderr } = spawnSync(`${root}/build/Release/optimizers_check`, { encoding: "utf8" });
    expect(status, stdout + stderr).toBe(0);
    const checked = [...stdout.matchAll(/^(\w+ \w+) (\d+) checks$/gm)].map(([, name, checks]) => ({
      name,
      enough: Number(checks) > 500,
    }));
    const here = Object.entries({ lion: addon.lions(), adamw: addon.adamws(), reductions: addon.reductions() }).flatMap(
      ([kernels, list]) => list.map(({ implementation }) => ({ name: `${kernels} ${implementation}`, enough: true })),
    );
    expect(checked).toEqual(here);
    expect(here.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["lion scalar", "adamw scalar", "reductions scalar"]),
    );
  });

  it("are built for the ABI that the header declares", () => {
    const header = readFileSync(new URL("../../include/terse/optimizers.h", import.meta.url), "utf8");
    expect(addon.abi).toBe(Number(/#define TERSE_OPTIMIZERS_ABI (\d+)/.exec(header)![1]));
  });

  it("are chosen by TERSE_IMPLEMENTATION; for `typescript` the scalar ones run", () => {
    const lions = addon.lions();
    expect(choose(lions, "")).toBe(lions[0]);
    for (const lion of lions) expect(choose(lions, lion.implementation)).toBe(lion);
    expect(choose(lions, "typescript").implementation).toBe("scalar");
    for (const { implementation } of lions) {
      const has = addon.adamws().some((adamw) => adamw.implementation === implementation);
      const simpler = addon.adamws()[0]!.implementation; // AdamW has no AVX-512 implementation: it would not be faster
      expect(choose(addon.adamws(), implementation).implementation).toBe(has ? implementation : simpler);
    }
    expect(() => choose(lions, "sse9")).toThrow(
      `set one of ${lions.map(({ implementation }) => implementation).join(", ")}.`,
    );
  });

  it("use the address of a view, not of its buffer", () => {
    const x = new Float32Array(8);
    expect(addressOf(x.subarray(3)) - addressOf(x)).toBe(12n);
    expect(addressOf({ pointer: 4096n, length: 1, dtype: "f32", device: "cpu" })).toBe(4096n);
  });

  it("have a README whose example prints the output shown there", () => {
    const [, program, output] = readFileSync(`${root}/README.md`, "utf8").match(
      /```ts\n([\s\S]*?)```\s*```text\n([\s\S]*?)```/,
    )!;
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ["--conditions=@terse/source", "--input-type=module-typescript", "-e", program!],
      {
        cwd: root,
        env: { ...process.env, NODE_OPTIONS: "" },
        encoding: "utf8",
      },
    );
    expect(stdout, stderr).toBe(output);
  });
});
