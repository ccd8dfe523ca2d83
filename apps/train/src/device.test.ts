import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildModel } from "./build.ts";
import { deviceOf } from "./device.ts";
import { embedded, readRecipe } from "./recipe.ts";

describe("a rank's device", () => {
  const on = (env: NodeJS.ProcessEnv, ...overrides: string[]) => deviceOf(readRecipe(embedded, overrides), env);
  const second = { RANK: "3", WORLD_SIZE: "4", LOCAL_RANK: "1", LOCAL_WORLD_SIZE: "2" };

  it("is the CPU unless the recipe says otherwise, and of GPUs the one of the rank's number on its machine", () => {
    expect(on(second)).toBe("cpu");
    expect(on(second, "device=cuda")).toBe("cuda:1");
    expect(on({}, "device=cuda")).toBe("cuda:0");
    expect(on(second, 'device="cuda:0"')).toBe("cuda:0"); // ranks that share one
    expect(on(second, "device=cuda", "optimizer.name=distributed-lion")).toBe("cuda:1");
  });

  it("is refused where it is no device, and where floats would have to travel", () => {
    expect(() => on({}, "device=gpu")).toThrow(/device: must be "cpu", "cuda" or, for example, "cuda:0"/);
    expect(() => on({}, "device=cuda", "optimizer.bits=4")).toThrow(/device: .*optimizer\.bits: 1\); take device: cpu/);
    expect(() => on({}, "device=cuda", "optimizer.momentumSync.segments=first-and-last")).toThrow(
      /momentumSync\.segments: none/,
    );
    expect(() => on({}, "device=cuda", "optimizer.name=lion")).toThrow(/lion sends floats/);
  });

  const driver = existsSync("/proc/driver/nvidia/version") || existsSync("/dev/nvidiactl");
  it.skipIf(driver)("is asked for before the first step: without a GPU a run says so (skipped where one is)", () => {
    expect(() => buildModel(readRecipe(embedded, ["device=cuda"]))).toThrow(/CUDA|NVIDIA/);
  });
});
