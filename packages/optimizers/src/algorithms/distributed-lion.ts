/**
 * Distributed Lion: every worker keeps its own momentum and sends the sign of its update.
 * Liu, Wu, Chen, Liang, Zhu, Liang, Krishnamoorthi, Liu 2024, Algorithm 1, https://arxiv.org/abs/2404.00438
 *
 *   δ ← sign(β₁ m + (1 − β₁) g)      g, m: this rank's own gradient and momentum
 *   m ← β₂ m + (1 − β₂) g
 *   Δ ← sign(Σ_ranks δ)              Majority Vote: a tie is 0
 *     or (1/P) Σ_ranks δ             Averaging
 *   θ ← θ − η (Δ + λ θ)
 *
 * One bit has no zero, so an element whose gradient is always 0 votes too: by turns + and −, or as `zero` says. With
 * `zero: hold` it votes 0, in two bits, and stays where it is: the 2-bit all-reduce of Ishikawa et al. 2024, Figure 3,
 * https://arxiv.org/abs/2411.16462. Then c = β₁ m + (1 − β₁) g is in memory during the vote, 4 n bytes.
 *
 * Shapes: θ, g, m, Δ (n)   δ: n bits
 * Sent per step: 1 message; times (P − 1)/P · n/8 bytes:
 *
 *                up   down, majority                             down, average
 *   one bit      1    1 if P is odd, 2 if it is even: may tie    ⌈log2(P + 1)⌉
 *   zero: hold   2    2                                          2, 4 or 8 for P up to 1, 7 or 127, else 16
 */
import { type Codec, signAt, ternary } from "@terse/codecs";
import { Tally } from "@terse/exchange";
import { nonNegativeFloat, oneOf, unitIntervalFloat, v } from "@terse/options";
import { noGrad, type Tensor, zerosLike } from "@terse/tensor";
import { define } from "../define.ts";
import { keptAboveZero } from "../kept-options.ts";
import { aloneAsLion, votesInRun } from "../momentum-sync.ts";
import { momentumSyncOptions } from "../momentum-sync-options.ts";
import type { Rules } from "./algorithm.ts";
import { applyVote, lionMix, lionVote } from "./kernels.ts";
import { addSeen, applyMasked, countsSeen, maskEvery, maskMessages, nonzero } from "./seen-mask.ts";
import type { State } from "./state.ts";

const options = v.object({
  beta1: v.optional(unitIntervalFloat, 0.9), // β₁
  beta2: v.optional(unitIntervalFloat, 0.99), // β₂
  weightDecay: v.optional(nonNegativeFloat, 0), // λ
  vote: v.optional(oneOf(["majority", "average"]), "majority"), // Δ
  // Sign(0), which the paper leaves open; hold: 0, in two bits.
  zero: v.optional(oneOf(["hold", "plus", "minus", "alternate"]), "alternate"),
  tie: v.optional(oneOf(["zero", "plus", "minus", "alternate"]), "zero"), // sign(Σ δ = 0), of a majority of signs
  // With a majority of signs: steps between two counts of the elements that have had a gradient; the others do not
  // move; 0 is never (seen-mask.ts).
  maskEvery,
  momentumSync: v.optional(momentumSyncOptions, {}), // which layers' m is averaged, and when; none in the paper
});

type Options = v.InferOutput<typeof options>;

export interface DistributedLionState extends State {
  readonly elements: {
    m: Tensor; // this rank's own, unless it is synchronised
    seen?: Tensor; // with a mask: 1 for elements that have had a gradient on some rank, else 0
  };
}

const averages = ({ vote }: Options) => vote === "average";
const holds = ({ vote, zero }: Options) => vote === "majority" && zero === "hold";

/**
 * Distributed Lion: ranks send the signs of their updates, which are averaged or voted on. Liu et al. 2024, Algorithm
 * 1.
 */
export const distributedLion = define({
  name: "distributed-lion",
  options,
  kept: keptAboveZero("maskEvery"),
  conflicts: [
    {
      option: "tie",
      when: (options) => options.tie !== "zero" && averages(options),
      because: ({ tie }) => `an average has no ties, and tie is ${tie}`,
      remedy: "leave tie out, or take vote: majority",
    },
    {
      option: "tie",
      when: (options) => options.tie !== "zero" && holds(options),
      because: ({ tie }) => `with zero: hold a sum of 0 does not move, and tie is ${tie}`,
      remedy: "leave tie out, or take another zero",
    },
    {
      option: "maskEvery",
      when: (options) => options.maskEvery > 0 && averages(options),
      because: () => "an average of signs has no zero for masked elements",
      remedy: "take vote: majority, or leave maskEvery out and take zero: hold",
    },
    {
      option: "maskEvery",
      when: (options) => options.maskEvery > 0 && holds(options),
      because: () => "with zero: hold elements without a gradient do not move",
      remedy: "leave maskEvery out, or take another zero",
    },
  ],
  inRun: votesInRun,
  alone: aloneAsLion,
  widthOfSums: "vote",

  create(options): Rules<DistributedLionState> {
    const { beta1, beta2, weightDecay, vote, zero, tie, maskEvery, momentumSync } = options;
    if (zero === "hold") return withZeros(options);
    const tieAt = (step: number) => (tie === "zero" ? tie : signAt(tie, step));
    return {
      splits: "anywhere",
      votes: { beta1, beta2 },
      momentumSync,

      init: (θ) => ({ elements: { m: zerosLike(θ), ...(maskEvery > 0 && { seen: zerosLike(θ) }) } }),

      async step(θ, g, { elements: { m, seen } }, exchange, { step, lr: η, gradientScale }) {
        const δ = lionVote(m, g, { beta1, beta2, zero: signAt(zero, step), gradientScale });

        using Δ = vote === "average" ? await exchange.tally(δ) : await exchange.majority(δ, { tie: tieAt(step) });

        if (seen && countsSeen(maskEvery, step)) {
          using counts = await exchange.tally(nonzero(m));
          addSeen(seen, counts);
        }
        await exchange.agreed();

        const change = { keep: 1 - η * weightDecay, scale: -η };
        if (seen && !(Δ instanceof Tally)) applyMasked(θ, Δ, seen, change);
        else applyVote(θ, Δ, change);
      },

      messages: ({ n }, step) => [
        { kind: "vote", n, outcome: vote === "average" ? "tally" : tieAt(step) },
        ...maskMessages(maskEvery, n, step),
      ],
    };
  },
});

/** With δ of two bits: −1, 0 or +1. */
function withZeros({ beta1, beta2, weightDecay, vote, momentumSync }: Options): Rules<DistributedLionState> {
  const codec = ternary as Codec; // its encoder takes the signs
  return {
    splits: "anywhere",
    votes: { beta1, beta2 },
    momentumSync,

    init: (θ) => ({ elements: { m: zerosLike(θ) } }),

    async step(θ, g, { elements: { m } }, exchange, { lr: η, gradientScale }) {
      using c = lionMix(m, g, { beta1, beta2, gradientScale });

      if (vote === "majority") {
        using Δ = await exchange.signOfLevels(c, { codec });
        await exchange.agreed();
        applyVote(θ, Δ, { keep: 1 - η * weightDecay, scale: -η });
        return;
      }
      using Δ = zerosLike(θ);
      await exchange.sumOfLevels(c, { codec, into: Δ, scale: 1 / exchange.ranks });
      await exchange.agreed();
      // η Δ is rounded by itself: some processors fuse a product with the subtraction that follows, and the ranks may
      // run on different ones.
      noGrad(() => θ.mul_(1 - η * weightDecay).sub_(Δ.mul_(η)));
    },

    messages: ({ n }) => [{ kind: vote === "majority" ? "signOfLevels" : "sumOfLevels", n, codec }],
  };
}
