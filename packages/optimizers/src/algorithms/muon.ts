/**
 * Muon: momentum whose singular values all become about 1. Jordan et al. 2024,
 * https://kellerjordan.github.io/posts/muon/; options, defaults and form of torch.optim.Muon, but for nsType
 *
 *   ḡ ← mean_ranks(g)                          at the matrix's owner
 *   M ← μ M + (1 − μ) ḡ                        the owner alone keeps M
 *   U ← NS(M)                                  Newton–Schulz (newton-schulz.ts); Nesterov: NS(μ M + (1 − μ) ḡ)
 *   U to all ranks
 *   X ← (1 − η λ) X − η s U                    s: adjustLrFn
 *
 *   adjustLrFn original          s = √max(1, m/n)
 *              match_rms_adamw   s = 0.2 √max(m, n), for a learning rate and a weight decay of AdamW.
 *                                Liu et al. 2025, §2.2, https://arxiv.org/abs/2502.16982
 *
 *   nsCoefficients   a, b, c of all `nsSteps` iterations, or a list of such triples, one for each. If the norm is first
 *                    enlarged by a factor s, as by 1.02 in Polar Express, the first triple has it: a/s, b/s³, c/s⁵
 *
 *   nsType     f32
 *              bf16              as torch.optim.Muon
 *              auto              bf16 where the owner's device multiplies it at least twice as fast: GPUs, processors
 *                                with AMX or AVX512-BF16
 *
 * A clip limits ḡ, as DDP's; then U waits for the norms of all gradients, of which the owners tell each other theirs.
 *
 * The ranks share the matrices, so each does its share of the matrix products, and no bit depends on a rank's own
 * processor.
 *
 * Shapes: X, g, M, U (m, n)
 * Sent per step: 2 messages, 2 (P − 1)/P · 4 m n bytes, if the ranks own equally much; with means and computed values
 * in int8 a quarter of it. With a compressed mean (gradients/) all ranks have ḡ, and U alone follows, (P − 1)/P · 4 m n
 * bytes, when all ranks have seen that the mean is finite. With fewer matrices than ranks f32 goes by slices, in twice
 * as many messages and about twice the bytes (computed-mean.ts of @terse/exchange).
 */
import { sgdStep } from "@terse/native-optimizers";
import {
  finite,
  flag,
  nonNegativeFloat,
  oneOf,
  positiveFloat,
  positiveInteger,
  unitIntervalFloat,
  v,
} from "@terse/options";
import { zeros } from "@terse/tensor";
import { define } from "../define.ts";
import type { Rules } from "./algorithm.ts";
import { type Coefficients, orthogonalize } from "./newton-schulz.ts";
import type { OwnedShare, State } from "./state.ts";

const most = 99; // iterations
const triple = v.tuple([finite, finite, finite]);
const coefficients = v.pipe(
  v.union([triple, v.pipe(v.array(triple), v.minLength(1), v.maxLength(most))]),
  v.description("a list of three numbers, or of such lists"),
);

const options = v.object({
  momentum: v.optional(unitIntervalFloat, 0.95), // μ
  nesterov: v.optional(flag, true),
  weightDecay: v.optional(nonNegativeFloat, 0.1), // λ
  // a, b, c; or a list of them, one for each iteration.
  nsCoefficients: v.optional(coefficients, [3.4445, -4.775, 2.0315]),
  // 5 if absent; with a list of triples as many as there are.
  nsSteps: v.optional(v.pipe(positiveInteger, v.maxValue(most))),
  nsType: v.optional(oneOf(["auto", "f32", "bf16"]), "auto"), // of the iterations
  eps: v.optional(positiveFloat, 1e-7),
  adjustLrFn: v.optional(oneOf(["original", "match_rms_adamw"]), "original"),
});

export interface MuonState extends State {
  readonly owned: {
    M: OwnedShare; // momentum: all of it at the matrix's owner
  };
}

/** Muon: momenta of matrices, orthogonalised by their owners. Jordan et al. 2024; options of torch.optim.Muon. */
export const muon = define({
  name: "muon",
  options,
  conflicts: [
    {
      option: "nsSteps",
      when: ({ nsCoefficients, nsSteps }) =>
        isList(nsCoefficients) && nsSteps !== undefined && nsSteps !== nsCoefficients.length,
      because: ({ nsCoefficients, nsSteps }) =>
        `nsCoefficients has a triple for each of ${nsCoefficients.length} iterations, and nsSteps is ${nsSteps}`,
      remedy: "leave nsSteps out",
    },
  ],

  create(given): Rules<MuonState> {
    const { weightDecay, adjustLrFn, nsCoefficients, nsSteps = 5 } = given;
    const coefficients = isList(nsCoefficients)
      ? nsCoefficients
      : new Array<Coefficients>(nsSteps).fill(nsCoefficients);
    const scaleOf = (m: number, n: number) =>
      adjustLrFn === "original" ? Math.sqrt(Math.max(1, m / n)) : 0.2 * Math.sqrt(Math.max(m, n));

    return {
      splits: "at segments",
      takes: "matrices",
      takesMean: true,

      init: ({ device }, { n, rank, owner }) => ({
        owned: { M: { begin: 0, values: zeros([rank === owner ? n : 0], { device }) } },
      }),

      async step(X, G, { owned: { M } }, exchange, { lr, vector: { rank, owner } }) {
        const gradientScale = await exchange.meanGradientAtOwner(G, { owner }); // the owner's G: ḡ
        if (rank === owner) orthogonalize(M.values, G, gradientScale, coefficients, given); // the owner's G: U
        await exchange.fromOwner(G, { owner });
        await exchange.agreed();

        // X ← (1 − η λ) X − η s U = X − η (s U + λ X)
        const [m, n] = X.shape as [number, number];
        sgdStep(X, undefined, G, { ...withoutMomentum, lr, weightDecay, gradientScale: scaleOf(m, n) });
      },

      messages: ({ n, owner }) => [{ kind: "meanGradientAtOwner" }, { kind: "fromOwner", n, owner }],
    };
  },
});

const isList = (given: Coefficients | readonly Coefficients[]): given is readonly Coefficients[] =>
  Array.isArray(given[0]);

const withoutMomentum = { momentum: 0, dampening: 0, nesterov: false, first: true } as const;
