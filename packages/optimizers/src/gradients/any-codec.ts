/**
 * Any codec C of packages/codecs, with error feedback or without. Seide, Fu, Droppo, Li, Yu 2014, "1-Bit Stochastic
 * Gradient Descent and its Application to Data-Parallel Distributed Training of Speech DNNs"; both ways as in Tang et
 * al. 2021, Algorithm 1, https://arxiv.org/abs/2102.02888
 *
 *                     with error feedback                          without
 *   few elements      a ← C(g + β e), e ← g + β e − a              a ← C(g)                       top-k, dct-top-k
 *                     g ← mean_ranks(a)                            g ← mean_ranks(a)
 *   whole numbers     –                                            u: the value of a level, agreed on for each layer
 *                                                                  g ← mean_ranks(u Q(g / u))     int8, l1, linf, qsgd
 *   other             a ← C(g + β e), e ← g + β e − a              a ← C(g)
 *                     b ← C(mean_ranks(a) + β f), f ← … − b        g ← mean_ranks(a)
 *                     g ← b
 *
 * e is the rank's own error, f that of the chunk of each layer that the rank owns. β is `decay`: both errors shrink by
 * it at each step, so that E = mean_ranks(e) + f follows E ← β E + mean_ranks(g) − b. With β = 1 nothing is lost.
 * SparseLoCo (Sarfi et al. 2025, https://arxiv.org/abs/2508.15706) is top-k with 0.95, which forgets what is stale.
 * Scales are those of a layer, or of `block` elements of it. A codec has no error feedback where the error could grow
 * without end: signs without a magnitude (sign, ternary), and levels drawn at random so far apart that the error of one
 * step can exceed the gradient (qsgd, terngrad, linf of 2 bits).
 *
 * Sent per step: 1 message, for each layer the bytes of `sparse`, of `sumOfFields` or of `meanErrorCompensated`
 * (docs/algorithms.md).
 */
import {
  type ChosenParameter,
  type Codec,
  codecNamed,
  codecsOfGradients,
  ParameterError,
  type Parameters,
} from "@terse/codecs";
import { type Message, ownedRange } from "@terse/exchange";
import { type Conflict, flag, nonNegativeFloat, OptionsError, oneOf, positiveInteger, v } from "@terse/options";
import { type Tensor, zeros, zerosLike } from "@terse/tensor";
import type { Vector } from "../algorithms/algorithm.ts";
import { drawsOf, seed } from "../algorithms/draws.ts";
import { perVector } from "../algorithms/per-vector.ts";
import type { OwnedShare, State } from "../algorithms/state.ts";
import { define } from "../define.ts";
import { makesState } from "../kept-options.ts";
import type { CompressionRules } from "./gradient-compression.ts";
import { ratio } from "./largest.ts";

const of = codecsOfGradients;
const names = Object.keys(of);

/** The parameters of all codecs, as options. One that is chosen as a share has the share's name. */
const chosenOf = (codec: string): [option: string, parameter: string, ChosenParameter][] =>
  Object.entries(of[codec]!.chosen ?? {}).map(([name, chosen]) => [chosen.asShare ?? name, name, chosen]);

const known = {
  bits: v.optional(positiveInteger),
  block: v.optional(positiveInteger),
  ratio: v.optional(ratio),
  k: v.optional(positiveInteger),
  clip: v.optional(nonNegativeFloat),
  indices: v.optional(oneOf(["fixed", "elias-fano"])),
  values: v.optional(oneOf(["f32", "f16", "2bit", "sign"])),
};

/** The options of all codecs' parameters. */
const parameters: typeof known = {
  ...known,
  ...(Object.fromEntries(
    names
      .flatMap(chosenOf)
      .filter(([option]) => !Object.hasOwn(known, option))
      .map(([option, , { asShare, choices }]) => [
        option,
        v.optional(choices ? oneOf(choices as [string, ...string[]]) : asShare ? ratio : nonNegativeFloat),
      ]),
  ) as object),
};

const options = v.object({
  codec: oneOf(names as [string, ...string[]]),
  errorFeedback: v.optional(flag, true),
  decay: v.optional(ratio, 1),
  ...parameters,
  seed,
});

type Options = { codec: string; errorFeedback: boolean; decay: number; seed: number } & Readonly<
  Record<string, unknown>
>;

export interface AnyCodecState extends State {
  readonly elements?: {
    gradientError: Tensor; // e, each rank's own
  };
  readonly owned?: {
    gradientOwnerError: OwnedShare; // f
  };
}

const listed = new Intl.ListFormat("en");

/** Options of a codec that would have no effect, or are missing. */
const parameterConflicts = Object.keys(parameters).flatMap((option): Conflict<Options>[] => {
  const found = ({ codec }: Options) => chosenOf(codec).find(([name]) => name === option);
  return [
    {
      option,
      when: (given) => given[option] !== undefined && !found(given),
      because: ({ codec }) => {
        const takes = chosenOf(codec).map(([name]) => name);
        return `${codec} takes none, ${takes.length > 0 ? `it has ${listed.format(takes)}` : "it has no options"}`;
      },
      remedy: "leave it out",
    },
    {
      option,
      when: (given) => given[option] === undefined && found(given)?.[2].needed === true,
      because: ({ codec }) => `${codec} needs it`,
      remedy: (given) => `give ${found(given)![2].means}`,
    },
  ];
});

const whyNoFeedback = ({ codec, errorFeedback, ...given }: Options) =>
  errorFeedback ? of[codec]!.noFeedback?.(given as Parameters) : undefined;

/**
 * The mean of gradients by any codec of @terse/codecs, with error feedback or without. Tang et al. 2021, Algorithm 1.
 */
export const anyCodec = define({
  name: "codec",
  options,
  /** The state depends on these: its errors, and the shapes in which the optimizer has its own. */
  kept: () => ({ codec: makesState, errorFeedback: makesState, block: makesState }),
  conflicts: [
    {
      option: "errorFeedback",
      when: (given) => whyNoFeedback(given) !== undefined,
      because: (given) => `${given.codec} has none, because it ${whyNoFeedback(given)}`,
      remedy: "set errorFeedback to false, or take int8, scaled-sign or top-k",
    },
    {
      option: "decay",
      when: ({ decay, errorFeedback }) => decay !== 1 && !errorFeedback,
      because: () => "there is no error that it could shrink: errorFeedback is false",
      remedy: "leave it out, or set errorFeedback to true",
    },
    ...parameterConflicts,
  ],

  create(
    { codec: name, errorFeedback, decay, seed, ...rest }: Options,
    where,
  ): CompressionRules<AnyCodecState> & { name: string } {
    const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)) as Parameters;
    const shares = chosenOf(name).filter(([, , { asShare }]) => asShare !== undefined);
    const codecWith = (parameters: Parameters): Codec => {
      try {
        return codecNamed(name, parameters);
      } catch (error) {
        if (!(error instanceof ParameterError)) throw error;
        throw new OptionsError([{ path: `${where}.${error.parameter}`, problem: error.problem }]);
      }
    };
    /** The parameters for n elements: shares become numbers of elements. */
    const ofLength = (n: number): Codec => {
      const known = byLength.get(n) ?? codecWith(withNumbers(given, shares, n));
      byLength.set(n, known);
      return known;
    };
    const byLength = new Map<number, Codec>();
    const whole = shares.length > 0 ? undefined : codecWith(given);

    const sums = !errorFeedback && whole?.summable !== undefined;
    const byLayers = sums && given.block === undefined;
    const cutAtLayers = perVector(({ lengths }) => codecWith({ ...given, segments: lengths }));
    /** The codec of a vector, with a scale for each layer if the vector has several. */
    const codecOf = (vector: Vector): Codec => {
      if (!whole) return ofLength(vector.n);
      return byLayers ? cutAtLayers(vector) : whole;
    };
    const keepsFew = (whole ?? ofLength(1)).kept !== undefined;
    const both = errorFeedback && !keepsFew; // ways

    return {
      name,
      splits: byLayers ? "anywhere" : "at segments",

      init(θ, vector) {
        if (!errorFeedback) return {};
        const elements = { gradientError: zerosLike(θ) };
        if (!both) return { elements };
        const [begin, end] = ownedRange(vector.n, vector.ranks, vector.rank, codecOf(vector));
        const values = zeros([end - begin]);
        return { elements, owned: { gradientOwnerError: { begin, values, alone: "gradientError" } } };
      },

      async mean(g, { elements, owned }, exchange, context) {
        const call = { codec: codecOf(context.vector), ...drawsOf(seed, context) };
        if (both)
          await exchange.meanErrorCompensated(g, {
            ...call,
            decay,
            workerError: elements!.gradientError,
            serverError: owned!.gradientOwnerError.values,
          });
        else if (sums) await exchange.sumOfFields(g, { ...call, scale: 1 / exchange.ranks });
        else if (errorFeedback) await exchange.sparse(g, { ...call, decay, error: elements!.gradientError });
        else await exchange.sparse(g, call);
      },

      messages: (vector): Message[] => [
        {
          kind: both ? "meanErrorCompensated" : sums ? "sumOfFields" : "sparse",
          n: vector.n,
          codec: codecOf(vector),
        },
      ],
    };
  },
});

/** Parameters with a number of elements in place of each share: share · n, rounded up, and at least 1. */
function withNumbers(given: Parameters, shares: ReturnType<typeof chosenOf>, n: number): Parameters {
  const others = Object.entries(given).filter(([option]) => !shares.some(([name]) => name === option));
  const numbers = shares.map(([option, parameter]) => {
    const share = (given as Record<string, number>)[option]!;
    return [parameter, Math.max(1, Math.ceil(share * n))];
  });
  return Object.fromEntries([...others, ...numbers]) as Parameters;
}
