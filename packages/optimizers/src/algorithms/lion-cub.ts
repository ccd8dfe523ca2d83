/**
 * Lion Cub: Lion whose ranks vote with one bit. Ishikawa, Ben-Nun, Van Essen, Yokota, Dryden 2024,
 * https://arxiv.org/abs/2411.16462
 *
 *   u ← sign(β₁ m + (1 − β₁) g)      g, m: this rank's own gradient and momentum
 *   m ← β₂ m + (1 − β₂) g
 *   v ← majority_ranks(u)            one bit up, one bit down; a tie is + and − on alternate steps (§3.2)
 *   θ ← θ − η (v + λ θ)              Algorithm 1, line 6, prints this with a sign slip; this is the slides' form
 *
 * With p bits, 2 to 8, ranks vote with levels in place of signs: lion-cub-levels.ts. `bits: auto` chooses by P, since
 * the paper has no rule but that the sum must fit into a byte (§5.2 and §6): sumBits: 8 up to 63 ranks, where at least
 * two levels are left on each side of 0, and one bit for more.
 *
 * Shapes: θ, g, m (n)   u, v: n bits
 * Sent per step: 1 message, 2 (P − 1)/P · n/8 bytes; 32-bit data parallel sends 32 times that.
 *   maskEvery      in every k-th step 1 message more (seen-mask.ts)
 *   momentumSync   after every k-th step the mean of m of some layers, 4 bytes an element and way (momentum-sync.ts)
 */
import { signAt } from "@terse/codecs";
import { type Tensor, zerosLike } from "@terse/tensor";
import { define } from "../define.ts";
import { keptAboveZero } from "../kept-options.ts";
import { aloneAsLion, votesInRun } from "../momentum-sync.ts";
import type { Rules } from "./algorithm.ts";
import { applyVote, lionVote } from "./kernels.ts";
import { lionCubLevels, sideOfSum } from "./lion-cub-levels.ts";
import { type LionCubOptions, lionCubConflicts, lionCubOptions } from "./lion-cub-options.ts";
import { addSeen, applyMasked, countsSeen, maskMessages, nonzero } from "./seen-mask.ts";
import type { State } from "./state.ts";

export interface LionCubState extends State {
  readonly elements: {
    m: Tensor; // this rank's own; ranks drift apart unless it is synchronised
    seen?: Tensor; // with a mask: 1 for elements that have had a gradient on some rank, else 0
  };
}

/** Lion Cub: Lion whose ranks vote, with one bit an element or with levels of several. Ishikawa et al. 2024. */
export const lionCub = define({
  name: "lion-cub",
  options: lionCubOptions,
  kept: keptAboveZero("maskEvery"),
  conflicts: lionCubConflicts,
  inRun: votesInRun,
  alone: aloneAsLion,
  widthOfSums: "bits",

  create(given, where): Rules<LionCubState> {
    const { bits, sumBits, zero } = given;
    if (bits === "auto") return chosenByRanks(given, where);
    if (bits > 1 || sumBits !== undefined || zero === "hold") return lionCubLevels({ ...given, bits }, where);
    return lionCubVotes({ ...given, zero });
  },
});

type VoteOptions = Omit<LionCubOptions, "zero"> & { readonly zero?: Parameters<typeof signAt>[0] | undefined };

function lionCubVotes({
  beta1,
  beta2,
  weightDecay,
  zero = "alternate",
  tie = "alternate",
  maskEvery,
  momentumSync,
}: VoteOptions): Rules<LionCubState> {
  return {
    splits: "anywhere", // every line above works on single elements, so buckets change nothing
    votes: { beta1, beta2 },
    momentumSync,

    init: (θ) => ({ elements: { m: zerosLike(θ), ...(maskEvery > 0 && { seen: zerosLike(θ) }) } }),

    async step(θ, g, { elements: { m, seen } }, exchange, { step, lr: η, gradientScale }) {
      const u = lionVote(m, g, { beta1, beta2, zero: signAt(zero, step), gradientScale }); // the first two lines

      using v = await exchange.majority(u, { tie: signAt(tie, step) });
      if (seen && countsSeen(maskEvery, step)) {
        using counts = await exchange.tally(nonzero(m));
        addSeen(seen, counts);
      }
      await exchange.agreed();

      const change = { keep: 1 - η * weightDecay, scale: -η };
      if (seen) applyMasked(θ, v, seen, change);
      else applyVote(θ, v, change);
    },

    messages: ({ n }, step) => [{ kind: "vote", n, outcome: signAt(tie, step) }, ...maskMessages(maskEvery, n, step)],
  };
}

/** `bits: auto` */
function chosenByRanks({ quantizer, sum, ...given }: LionCubOptions, where: string): Rules<LionCubState> {
  const levels = lionCubLevels({ ...given, quantizer, sum, bits: 1, sumBits: 8 }, where);
  const votes = lionCubVotes({ ...given, zero: undefined });
  const of = (ranks: number) => (sideOfSum(8, ranks) > 1 ? levels : votes);
  return {
    ...votes,
    init: (θ, vector) => of(vector.ranks).init(θ, vector),
    step: (θ, g, state, exchange, context) => of(context.vector.ranks).step(θ, g, state, exchange, context),
    messages: (vector, step, state) => of(vector.ranks).messages(vector, step, state),
  };
}
