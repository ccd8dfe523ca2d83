import { existsSync } from "node:fs";
import { type Algorithm, algorithms, gradientCompressions } from "@terse/optimizers";
import { Arena } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { gpu, withEmulatedTensors } from "../../../packages/optimizers/src/testing/emulated-gpu.ts";
import { onRanks } from "../../../packages/optimizers/src/testing/on-ranks.ts";
import { buildModel, buildOptimizer } from "./build.ts";
import { deviceOf, openDeviceOf, unusable } from "./device.ts";
import { readRecipe } from "./recipe.ts";

describe("a rank's device", () => {
  const on = (env: NodeJS.ProcessEnv, ...overrides: string[]) => deviceOf(readRecipe("gpt-small", overrides), env);
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
  // Whole numbers of Lion's steps are for rounds of local steps alone.
  const perStep = Object.keys(gradientCompressions).filter((name) => name !== "lion-steps");
  const methods = [
    ...Object.entries(algorithms).map(([name, create]) => [
      `optimizer.name=${name}`,
      "exchange.gradient=null",
      ...ofMatrices(create as () => Algorithm),
    ]),
    ...perStep.map((name) => [
      `exchange.gradient.name=${name}`,
      ...(name === "codec" ? ["exchange.gradient.codec=int8"] : []),
    ]),
  ];

  it.each(methods)("is a GPU with every optimizer and compression of gradients: %s", (...method) =>
    withEmulatedTensors(async () => {
      await onRanks(2, async (group) => {
        const recipe = readRecipe("gpt-small", [...small, "device=cuda", ...method]);
        const arena = new Arena(buildModel(recipe));
        await using optimizer = await buildOptimizer(recipe, arena, group);
        expect(arena.parameters.device).toBe(gpu);
        expect(optimizer.requests(0)).not.toEqual([]);
      });
    }),
  );

  it("says of a GPU that cannot be used why, without the name of a function", () => {
    const here = import.meta.filename;
    expect(unusable({ device: "cuda" }, "openDevice: no CUDA device can be used: a library is missing", [here])).toBe(
      "device: cuda: no CUDA device can be used: a library is missing",
    );
    const none = "openDevice: there is no cuda:1: this machine has 1 GPU, cuda:0";
    expect(unusable({ device: "cuda:1" }, none, [here])).toBe(
      "device: cuda:1: there is no cuda:1: this machine has 1 GPU, cuda:0",
    );
    expect(unusable({ device: "cuda" }, none, [here])).toBe(
      "device: cuda: there is no cuda:1: this machine has 1 GPU, cuda:0; each rank takes one: start as many ranks, --nproc-per-node=gpu, or let them share one, --device=cuda:0",
    );
    expect(unusable({ device: "cuda:0" }, "openDevice: no CUDA device can be used", [`${here}/none`])).toBe(
      "device: cuda:0: this machine has no NVIDIA driver (see ./terse doctor)",
    );
  });

  const driver = ["/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg"].some((file) => existsSync(file));
  it.skipIf(driver)(
    "is opened before the first step, and refused without a driver (skipped where there is one)",
    () => {
      const recipe = readRecipe("gpt-small", ["device=cuda"]);
      const none = /^device: cuda: this machine has no NVIDIA driver \(see \.\/terse doctor\)$/;
      expect(openDeviceOf(readRecipe("gpt-small", []))).toBe("cpu");
      expect(() => openDeviceOf(recipe)).toThrow(none);
      expect(() => buildModel(recipe)).toThrow(none);
    },
  );
});
