import { existsSync } from "node:fs";
import { type Algorithm, algorithms, gradientCompressions } from "@terse/optimizers";
import { Arena } from "@terse/tensor";
import { describe, expect, it, vi } from "vitest";
import { native } from "../../../native/tensor/src/index.ts";
import { EmulatedGpu, gpu } from "../../../packages/optimizers/src/testing/emulated-gpu.ts";
import { onRanks } from "../../../packages/optimizers/src/testing/on-ranks.ts";
import { buildModel, buildOptimizer } from "./build.ts";
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
  });

  it("is refused if it is unknown", () => {
    expect(() => on({}, "device=gpu")).toThrow(/device: must be "cpu", "cuda" or, for example, "cuda:0"/);
  });

  const small = ["model.preset=nano", "model.width=32", "model.layers=1"];
  const ofOthers = "optimizer.groups=[{ roles: [embedding, head, norm, vector], name: adamw }]";
  const ofMatrices = (create: () => Algorithm) => (create().takes === "matrices" ? [ofOthers] : []);
  const methods = [
    ...Object.entries(algorithms).map(([name, { create }]) => [
      `optimizer.name=${name}`,
      "exchange.gradient=null",
      ...ofMatrices(create),
    ]),
    ...Object.keys(gradientCompressions).map((name) => [
      `exchange.gradient.name=${name}`,
      ...(name === "codec" ? ["exchange.gradient.codec=int8"] : []),
    ]),
  ];

  // No kernel runs, so none is compiled.
  it.each(methods)("is a GPU with every optimizer and compression of gradients: %s", (...method) =>
    EmulatedGpu.prototype.run(async () => {
      const opening = vi.spyOn(native, "openDevice").mockImplementation((device) => device);
      try {
        await onRanks(2, async (group) => {
          const recipe = readRecipe(defaultRecipe, [...small, "device=cuda", ...method]);
          const arena = new Arena(buildModel(recipe));
          await using optimizer = await buildOptimizer(recipe, arena, group);
          expect(arena.parameters.device).toBe(gpu);
          expect(optimizer.requests(0)).not.toEqual([]);
        });
      } finally {
        opening.mockRestore();
      }
    }),
  );

  const driver = existsSync("/proc/driver/nvidia/version") || existsSync("/dev/nvidiactl");
  it.skipIf(driver)("is opened before the first step: without a GPU the run fails (skipped where there is one)", () => {
    expect(() => buildModel(readRecipe(defaultRecipe, ["device=cuda"]))).toThrow(/CUDA|NVIDIA/);
  });
});
