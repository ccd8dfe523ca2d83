import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { cases, train } from "./testing/gpu-cases.ts";

const driver = existsSync("/proc/driver/nvidia/version") || existsSync("/dev/nvidiactl");

// libtorch's operators on a GPU round in another order than on a CPU, so parameters are near each other, and only ranks
// have the same bits.
describe.skipIf(!driver)(
  `a step on the GPU of this machine${driver ? "" : " (skipped: there is no NVIDIA driver)"}`,
  () => {
    it.each(cases)("leaves the same bits on all ranks, near the CPU's: $name", async ({ create, more }) => {
      const [expected] = await train(create, more);
      const ranks = await train(create, more, "cuda:0");
      for (const { θ } of ranks) expect(θ).toEqual(ranks[0]!.θ);
      const distance = Math.hypot(...expected!.θ.map((x, i) => x - ranks[0]!.θ[i]!)) / Math.hypot(...expected!.θ);
      expect(distance).toBeLessThan(5e-3); // a sign that rounding changes moves an element by 2 η, 5e-4 of all
    });
  },
);
