/**
 * The steps of Lion as whole numbers, for the rounds of local steps. Without weight decay each step of Lion moves an
 * element by η, so what H of them have taken away is k η. Chen et al. 2023, "Symbolic Discovery of Optimization
 * Algorithms", Algorithm 2, https://arxiv.org/abs/2302.06675
 *
 *   k ← round(g / η)                 −H … H; what rounding takes away is the rounding of Lion's own steps
 *   g ← (η / P) Σ_ranks k            Σ is exact, in any order of the ranks; its product is rounded once
 *
 * Nothing is lost, and so nothing is carried on: it is the mean in f32 but for f32's own rounding, in a quarter to a
 * fifth of its bytes. It does not send the fewest bits.
 *
 * Shapes: g, k (n)
 * Sent per step: 1 message, ⌈log₂(2 H + 1)⌉ bits an element up, and up to 8, or 16, that hold P H down: `sumOfLevels`.
 */
import { type Codec, l1 } from "@terse/codecs";
import { type Conflict, positiveFloat, positiveInteger, v } from "@terse/options";
import { define } from "../define.ts";
import type { CompressionRules } from "./gradient-compression.ts";

/** Levels of 8 bits, the most that `l1` writes. */
export const mostLionSteps = 127;

const options = v.object({
  unit: v.optional(positiveFloat), // η of Lion, the same in all steps
  steps: v.optional(v.pipe(positiveInteger, v.maxValue(mostLionSteps))), // H, the most between two rounds
});

type Options = v.InferOutput<typeof options>;

/** A recipe takes them from its other sections. */
const needed = (option: keyof Options, remedy: string): Conflict<Options> => ({
  option,
  when: (given) => given[option] === undefined,
  because: () => "lion-steps needs it",
  remedy,
});

/** What local steps of Lion have moved, as whole numbers of learning rates. Chen et al. 2023, Algorithm 2. */
export const lionSteps = define({
  name: "lion-steps",
  options,
  conflicts: [needed("unit", "give Lion's learning rate"), needed("steps", "give the steps between two rounds")],

  create(given): CompressionRules {
    const { unit, steps } = given as Required<Options>;
    const codec = l1({ bits: Math.ceil(Math.log2(2 * steps + 1)), side: steps, unscaled: true }) as Codec;
    return {
      splits: "anywhere",

      init: () => ({}),

      async mean(g, _, exchange) {
        await exchange.sumOfLevels(g, { codec, unit, scale: unit / exchange.ranks });
      },

      messages: ({ n }) => [{ kind: "sumOfLevels", n, codec }],
    };
  },
});
