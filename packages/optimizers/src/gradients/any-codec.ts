/**
 * Any codec C of packages/codecs, with error feedback or without. Seide, Fu, Droppo, Li, Yu 2014, "1-Bit Stochastic
 * Gradient Descent and its Application to Data-Parallel Distributed Training of Speech DNNs"; both ways as in Tang et
 * al. 2021, Algorithm 1, https://arxiv.org/abs/2102.02888
 *
 *                     with error feedback                          without
 *   few elements      a ← C(g + e), e ← g + e − a                  a ← C(g)                         top-k, dct-top-k
 *                     g ← mean_ranks(a)                            g ← mean_ranks(a)
 *   whole numbers     –                                            u: what one level is worth, agreed on by the ranks for each layer
 *                                                                  g ← mean_ranks(u Q(g / u))       int8, l1, linf, qsgd
 *   other             a ← C(g + e), e ← g + e − a                  a ← C(g)
 *                     b ← C(mean_ranks(a) + f), f ← … − b          g ← mean_ranks(a)
 *                     g ← b
 *
 * e is the rank's own error, f that of the chunk of each layer that the rank owns. Scales are those of a layer, or of
 * `block` elements of it. A codec has no error feedback where the error could grow without end: signs without a
 * magnitude (sign, ternary), and levels drawn at random so far apart that the error of one step can exceed the gradient
 * (qsgd, terngrad, linf of 2 bits).
 *
 * Sent per step: 1 message, for each layer the bytes of `sparse`, of `sumOfFields` or of `meanErrorCompensated`
 * (docs/algorithms.md).
 */
import { type Codec, codecNamed, ParameterError, type Parameters } from "@terse/codecs";
import { type Message, ownedRange } from "@terse/exchange";
import { type Conflict, flag, nonNegativeFloat, OptionsError, oneOf, positiveInteger, v } from "@terse/options";
import { noGrad, type Tensor, zeros, zerosLike } from "@terse/tensor";
import type { Vector } from "../algorithms/algorithm.ts";
import { drawsOf, seed } from "../algorithms/draws.ts";
import { perVector } from "../algorithms/per-vector.ts";
import type { OwnedShare, State } from "../algorithms/state.ts";
import { define } from "../define.ts";
import { makesState } from "../kept-options.ts";
import type { CompressionRules } from "./gradient-compression.ts";
import { ratio, topOf } from "./largest.ts";

/** Why a codec has no error feedback; undefined where it has. */
const noFeedback = {
  bf16: () => undefined,
  f16: () => undefined,
  int8: () => undefined,
  l1: () => undefined,
  linf: (bits) => (bits === 2 ? "draws −1, 0 and 1 at random, and their error may exceed the gradient" : undefined),
  qsgd: () => "draws its levels at random, and their error may exceed the gradient",
  terngrad: () => "draws −1, 0 and 1 at random, and their error may exceed the gradient",
  "scaled-sign": () => undefined,
  sign: () => "sends no magnitude",
  ternary: () => "sends no magnitude",
  "top-k": () => undefined,
  "dct-top-k": () => undefined,
} satisfies Record<string, (bits?: number) => string | undefined>;

type Name = keyof typeof noFeedback;

type Parameter = "bits" | "block" | "ratio" | "k" | "clip";

/** The options that a codec takes, and of these the ones that it needs. */
const parametersOf: Readonly<Record<Name, readonly [takes: readonly Parameter[], needs: readonly Parameter[]]>> = {
  bf16: [[], []],
  f16: [[], []],
  int8: [["block"], []],
  l1: [["bits", "block"], ["bits"]],
  linf: [["bits", "block"], ["bits"]],
  qsgd: [["bits", "block"], ["bits"]],
  terngrad: [["block", "clip"], []],
  "scaled-sign": [["block"], []],
  sign: [[], []],
  ternary: [[], []],
  "top-k": [["ratio"], ["ratio"]],
  "dct-top-k": [
    ["block", "k"],
    ["block", "k"],
  ],
};

const meanings: Readonly<Record<Parameter, string>> = {
  bits: "the bits of an element",
  block: "the elements that share a scale, or those of a chunk",
  ratio: "the share of elements that is sent, such as 0.01",
  k: "the cosines of a chunk that are sent",
  clip: "the standard deviations to clip at",
};

const options = v.object({
  codec: oneOf(Object.keys(noFeedback) as [Name, ...Name[]]),
  errorFeedback: v.optional(flag, true),
  bits: v.optional(positiveInteger), // of l1, linf, qsgd: of an element
  block: v.optional(positiveInteger), // elements that share a scale; of a layer if absent. Of dct-top-k: of a chunk
  ratio: v.optional(ratio), // of top-k: of the elements that are sent
  k: v.optional(positiveInteger), // of dct-top-k: cosines of a chunk that are sent
  clip: v.optional(nonNegativeFloat), // of terngrad: standard deviations
  seed,
});

type Options = v.InferOutput<typeof options>;

export interface AnyCodecState extends State {
  readonly elements?: {
    gradientError: Tensor; // e, each rank's own
  };
  readonly owned?: {
    gradientOwnerError: OwnedShare; // f
  };
}

/** Of what an option of the codec would have no effect, or is missing. */
const parameterConflicts = (Object.keys(meanings) as Parameter[]).flatMap((option): Conflict<Options>[] => [
  {
    option,
    when: (given) => given[option] !== undefined && !takes(given).includes(option),
    because: (given) =>
      `${given.codec} takes none, ${takes(given).length > 0 ? `it has ${takes(given).join(" and ")}` : "it has no options"}`,
    remedy: "leave it out",
  },
  {
    option,
    when: (given) => given[option] === undefined && parametersOf[given.codec][1].includes(option),
    because: ({ codec }) => `${codec} needs it`,
    remedy: `give ${meanings[option]}`,
  },
]);

const takes = ({ codec }: Options) => parametersOf[codec][0];

const whyNoFeedback = ({ codec, errorFeedback, bits }: Options) =>
  errorFeedback ? noFeedback[codec](bits) : undefined;

export const anyCodec = define({
  name: "codec",
  options,
  /** Of the state: its errors, and the shapes in which the optimizer has its own. */
  kept: () => ({ codec: makesState, errorFeedback: makesState, block: makesState }),
  conflicts: [
    {
      option: "errorFeedback",
      when: (given) => whyNoFeedback(given) !== undefined,
      because: (given) => `${given.codec} has none, because it ${whyNoFeedback(given)}`,
      remedy: "set errorFeedback to false, or take int8, scaled-sign or top-k",
    },
    ...parameterConflicts,
  ],

  create(
    { codec: name, errorFeedback, ratio, seed, ...rest },
    where,
  ): CompressionRules<AnyCodecState> & { name: string } {
    const parameters = Object.fromEntries(
      Object.entries(rest).filter(([, value]) => value !== undefined),
    ) as Parameters;
    const codecWith = (given: Parameters): Codec => {
      try {
        return codecNamed(name, given);
      } catch (error) {
        throw error instanceof ParameterError
          ? new OptionsError([{ path: `${where}.${error.parameter}`, problem: error.problem }])
          : error;
      }
    };
    const whole = name === "top-k" ? undefined : codecWith(parameters);

    const sums = !errorFeedback && whole?.summable !== undefined;
    const byLayers = sums && parameters.block === undefined;
    const cutAtLayers = perVector(({ lengths }) => codecWith({ ...parameters, segments: lengths }));
    /** The codec of a vector: with a scale for each layer where it holds several. */
    const codecOf = (vector: Vector): Codec => {
      if (!whole) return topOf(vector.n, ratio!);
      return byLayers ? cutAtLayers(vector) : whole;
    };
    const keepsFew = !whole || whole.kept !== undefined;
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
        const call = { into: g, codec: codecOf(context.vector), ...drawsOf(seed, context) };
        using own = g.clone().keep();
        noGrad(() => g.zero_());
        if (both)
          await exchange.meanErrorCompensated(own, {
            ...call,
            workerError: elements!.gradientError,
            serverError: owned!.gradientOwnerError.values,
          });
        else if (sums) await exchange.sumOfFields(own, { ...call, scale: 1 / exchange.ranks });
        else await exchange.sparse(own, { ...call, error: elements?.gradientError });
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
