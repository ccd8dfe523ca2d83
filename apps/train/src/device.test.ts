import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildModel } from "./build.ts";
import { deviceOf } from "./device.ts";
import { defaultRecipe, readRecipe } from "./recipe.ts";

describe("a rank's device", () => {
  const on = (env: NodeJS.ProcessEnv, ...overrides: string[]) => deviceOf(readRecipe(defaultRecipe, overrides), env);
  const second = { RANK: "3", WORLD_SIZE: "4", LOCAL_RANK: "1", LOCAL_WORLD_SIZE: "2" };

  it("is the CPU by default, or the GPU with the number of the local rank", () => {
    expect(on(second)).toBe("cpu");
    expect(on(second, "device=cuda")).toBe("cuda:1");
    expect(on({}, "device=cuda")).toBe("cuda:0");
    expect(on(second, 'device="cuda:0"')).toBe("cuda:0"); // ranks that share one
    expect(on(second, "device=cuda", "optimizer.name=distributed-lion")).toBe("cuda:1");
  });

  it("is refused if it is unknown, or if the optimizer would send floats from a GPU", () => {
    expect(() => on({}, "device=gpu")).toThrow(/device: must be "cpu", "cuda" or, for example, "cuda:0"/);
    expect(() => on({}, "device=cuda", "optimizer.bits=4")).toThrow(/device: .*optimizer\.bits: 1\); take device: cpu/);
    expect(() => on({}, "device=cuda", "optimizer.momentumSync.segments=first-and-last")).toThrow(
      /momentumSync\.segments: none/,
    );
    expect(() => on({}, "device=cuda", "optimizer.name=lion")).toThrow(/lion sends floats/);
  });

  const driver = existsSync("/proc/driver/nvidia/version") || existsSync("/dev/nvidiactl");
  it.skipIf(driver)("is opened before the first step: without a GPU the run fails (skipped where there is one)", () => {
    expect(() => buildModel(readRecipe(defaultRecipe, ["device=cuda"]))).toThrow(/CUDA|NVIDIA/);
  });
});
