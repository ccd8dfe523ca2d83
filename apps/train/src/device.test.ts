import { existsSync } from "node:fs";
import { algorithms } from "@terse/optimizers";
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

  it("is refused if it is unknown", () => {
    expect(() => on({}, "device=gpu")).toThrow(/device: must be "cpu", "cuda" or, for example, "cuda:0"/);
  });

  it.each(Object.keys(algorithms))("is a GPU for every optimizer: %s", (name) => {
    expect(on(second, "device=cuda", `optimizer.name=${name}`)).toBe("cuda:1");
  });

  const driver = existsSync("/proc/driver/nvidia/version") || existsSync("/dev/nvidiactl");
  it.skipIf(driver)("is opened before the first step: without a GPU the run fails (skipped where there is one)", () => {
    expect(() => buildModel(readRecipe(defaultRecipe, ["device=cuda"]))).toThrow(/CUDA|NVIDIA/);
  });
});
