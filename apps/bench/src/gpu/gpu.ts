/** `bench gpu`: where no GPU is, each setting says so and measures nothing. */
import type { Suite } from "../suite.ts";
import { gpt2 } from "./gpt-2.ts";
import { kernelsOfCodecs, kernelsOfOptimizers } from "./kernels.ts";
import { training } from "./training.ts";
import { twoRanks } from "./two-ranks.ts";

export const gpu: Suite = {
  codecs: kernelsOfCodecs,
  optimizers: kernelsOfOptimizers,
  training,
  "two-ranks": twoRanks,
  "gpt-124m": gpt2,
};
