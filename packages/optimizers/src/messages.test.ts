/** As many messages leave in a step as the paper's box has awaits, however many matrices there are. */
import { zeros } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { algorithms as registry } from "./algorithms/algorithms.ts";
import { gradientCompressions } from "./gradients/gradients.ts";
import {
  type Algorithm,
  adamw,
  anyCodec,
  compressed,
  demo,
  dgc,
  dion,
  distributedLion,
  efSignsgd,
  type GradientCompression,
  graddrop,
  lamb,
  lambBasicOneBit,
  lion,
  lionCub,
  lionSteps,
  muon,
  oneBitAdam,
  oneBitLamb,
  powersgd,
  qsgd,
  sgd,
  signsgd,
  signum,
  terngrad,
  zeroOneAdam,
} from "./index.ts";
import { type Gradients, noise, trainMatrices } from "./testing/train-matrices.ts";

/** Messages of an await on each of 3 ranks, P − 1 = 2: those of its collective in docs/algorithms.md. */
const ofAwait = {
  mean: 2, // P − 1: an all-reduce of at most 8 KiB, directly
  sparse: 2, // P − 1: an all-to-all
  toOwners: 2, // P − 1: vectors to their owners
  fromOwners: 2, // P − 1: results from them
  owners: 4, // 2 (P − 1): to the owners, and back. Computed means, error-compensated means, levels
  majority: 4, // 2 (P − 1): signs up, one bit down
  tally: 6, // 3 (P − 1): signs up, two bits of a count of 3 votes down
  fields: 6, // 3 (P − 1): an all-reduce of the scales, and as owners
  direct: 2, // P − 1: an all-reduce of fields
  agreement: 4, // 2 (P − 1) bare headers, by which the ranks agree on a step without an await
} as const;

/** A step's messages, and the awaits in the paper's box that they are. */
type Phase = readonly [messages: number, ...awaits: (keyof typeof ofAwait)[]];

/** The first steps of each algorithm, through all of its phases. */
const table: Record<string, [create: () => Algorithm, ...Phase[]]> = {
  sgd: [sgd, [2, "mean"]],
  adamw: [adamw, [2, "mean"]],
  lion: [lion, [2, "mean"]],
  lamb: [lamb, [2, "mean"]],
  signsgd: [signsgd, [4, "majority"]],
  signum: [signum, [4, "majority"]],
  "distributed-lion": [distributedLion, [4, "majority"]], // of three votes, without a tie
  "distributed-lion, average": [() => distributedLion({ vote: "average" }), [6, "tally"]],
  "distributed-lion, zeros held": [() => distributedLion({ zero: "hold" }), [4, "owners"]],
  "distributed-lion, average, zeros held": [() => distributedLion({ zero: "hold", vote: "average" }), [4, "owners"]],
  "distributed-lion, a mask": [() => distributedLion({ maskEvery: 2 }), [10, "majority", "tally"], [4, "majority"]],
  "lion-cub": [lionCub, [4, "majority"]],
  "lion-cub, zeros held": [() => lionCub({ zero: "hold" }), [4, "owners"]],
  "lion-cub, 5 bits": [() => lionCub({ bits: 5 }), [4, "owners"]],
  "lion-cub, 5 bits, direct": [() => lionCub({ bits: 5, sum: "direct" }), [2, "direct"]],
  "lion-cub, logarithmic": [() => lionCub({ bits: 5, quantizer: "linf-logarithmic" }), [4, "owners"]],
  "lion-cub, a mask": [() => lionCub({ maskEvery: 2 }), [10, "majority", "tally"], [4, "majority"]],
  "lion-cub, averaged momenta": [
    () => lionCub({ momentumSync: { segments: "all", every: 2 } }),
    [4, "majority"],
    [6, "majority", "mean"],
  ],
  "one-bit-adam": [() => oneBitAdam({ warmup: 1 }), [2, "mean"], [4, "owners"]],
  "one-bit-adam, fused": [() => oneBitAdam({ warmup: 1, scale: "fused" }), [2, "mean"], [4, "owners"]],
  "one-bit-lamb": [() => oneBitLamb({ warmup: 1 }), [2, "mean"], [4, "owners"]],
  "lamb-basic-one-bit": [() => lambBasicOneBit({ warmup: 1 }), [2, "mean"], [4, "owners"]],
  "zero-one-adam": [
    () => zeroOneAdam({ freeze: 3, kappa: 1, doubling: 1, localSteps: 2 }), // T_v: 0, 1; T_u: all but 5
    [2, "mean"],
    [2, "mean"],
    [4, "owners"],
    [4, "owners"],
    [4, "owners"],
    [4, "agreement"],
  ],
  "zero-one-adam, early buffer": [
    () => zeroOneAdam({ freeze: 3, kappa: 1, early: "buffer", eps: 1 }),
    [6, "mean", "owners"],
    [6, "mean", "owners"],
    [4, "owners"],
  ],
  "zero-one-adam, early gradient": [
    () => zeroOneAdam({ freeze: 3, kappa: 1, early: "gradient" }),
    [2, "mean"],
    [2, "mean"],
    [4, "owners"],
  ],
  muon: [() => muon({ nsType: "f32" }), [4, "toOwners", "fromOwners"]],
  dion: [() => dion({ rank: 2 }), [6, "owners", "mean"]], // orth(mean(B Q)), mean(Bᵀ P)
  "dion, own errors": [() => dion({ rank: 2, errorFeedback: "own" }), [6, "owners", "mean"]],
  "dion, by singular values": [() => dion({ rank: 2, approximate: "svd" }), [4, "owners"]],
  demo: [() => demo({ chunk: 4, k: 3 }), [2, "sparse"]],
};

/** The phases of the mean gradient, by the compression that carries it. */
const compressions: Record<string, [create: () => GradientCompression, ...Phase[]]> = {
  "codec, both ways": [() => anyCodec({ codec: "scaled-sign" }), [4, "owners"]],
  "codec, whole numbers": [() => anyCodec({ codec: "int8", errorFeedback: false }), [6, "fields"]],
  "codec, few elements": [() => anyCodec({ codec: "top-k", ratio: 0.1 }), [2, "sparse"]],
  "ef-signsgd": [efSignsgd, [2, "sparse"]],
  qsgd: [qsgd, [2, "sparse"]],
  terngrad: [terngrad, [6, "fields"]],
  "terngrad, own scalers": [() => terngrad({ scaler: "own" }), [2, "sparse"]],
  graddrop: [() => graddrop({ ratio: 0.1 }), [2, "sparse"]],
  "lion-steps": [() => lionSteps({ unit: 0.01, steps: 10 }), [4, "owners"]],
  dgc: [() => dgc({ ratio: 0.1, warmup: 1 }), [2, "sparse"], [2, "sparse"]],
  // orth(mean(M Q)), mean(Mᵀ P)
  powersgd: [() => powersgd({ startPowerSGDIter: 1 }), [2, "mean"], [6, "owners", "mean"]],
};

const unders = Object.values(registry)
  .map((create) => create as () => Algorithm)
  .filter((create) => create().takesMean);

const pairs = unders.flatMap((under) =>
  Object.entries(compressions).map(([compression, [carrier, ...phases]]) => {
    // The owners send Muon's updates.
    const [messages, ...awaits]: Phase = under().name === "muon" ? [2, "fromOwners"] : [0];
    return {
      name: `${under().name} with ${compression}`,
      create: () => compressed(under(), carrier()),
      phases: phases.map(([first, ...others]): Phase => [first + messages, ...others, ...awaits]),
    };
  }),
);

async function check(create: () => Algorithm, phases: readonly Phase[], clip = 0): Promise<void> {
  for (const [messages, ...awaits] of phases)
    expect(messages, awaits.join(", ")).toBe(awaits.reduce((sum, one) => sum + ofAwait[one], 0));
  for (const matrices of [6, 18]) {
    const shapes = Array.from({ length: matrices }, () => [8, 8] as const);
    const gradients: Gradients = (rank, step, layer) => noise(64, rank, step, layer);
    const ranks = await trainMatrices(3, create, shapes, gradients, { steps: phases.length, clip });
    for (const steps of ranks)
      expect(
        steps.map((step) => step.messages),
        `${matrices} matrices`,
      ).toEqual(phases.map(([messages]) => messages));
  }
}

/** For algorithms without a row above: the await of each kind that `messages` names for the first step. */
const awaitOf: Record<string, keyof typeof ofAwait> = {
  meanGradient: "mean",
  mean: "mean",
  meanGradientAtOwner: "toOwners",
  fromOwner: "fromOwners",
  sparse: "sparse",
  sumOfFields: "fields",
};

const beforeComma = (rows: object) => new Set(Object.keys(rows).map((name) => name.split(",")[0]!));

/**
 * The rows of a registry's entries that are not in the table: as many messages as their `messages` say, in every step
 * of three.
 */
function derived(registry: object, rows: object, algorithmOf: (create: never) => Algorithm) {
  const missing = Object.entries(registry).filter(([name]) => !beforeComma(rows).has(name));
  return missing.map(([name, create]): [string, () => Algorithm, ...Phase[]] => {
    const algorithm = () => algorithmOf(create as never);
    const vector = { n: 64, offset: 0, segments: [{ name: "x", offset: 0, length: 64, shape: [8, 8] }], lengths: [64] };
    const θ = zeros([8, 8]);
    const instance = algorithm();
    const state = instance.init(θ, { ...vector, rank: 0, ranks: 3, owner: 0 } as never);
    const kinds = instance
      .messages({ ...vector, rank: 0, ranks: 3, owner: 0 } as never, 0, state)
      .map(({ kind }) => kind);
    const awaits = kinds.map((kind) => awaitOf[kind] ?? "owners");
    const messages = awaits.reduce((sum, one) => sum + ofAwait[one], 0);
    return [name, algorithm, [messages, ...awaits]];
  });
}

describe("the messages of a step are those of its awaits, for 6 matrices and for 18", () => {
  it.each(Object.entries(table))("%s", (_, [create, ...phases]) => check(create, phases));

  for (const [name, create, ...phases] of [
    ...derived(registry, table, (create: () => Algorithm) => create()),
    ...derived(gradientCompressions, compressions, (create: () => GradientCompression) => compressed(sgd(), create())),
  ])
    it(name, () => check(create, phases));

  it.each(pairs)("$name", ({ create, phases }) => check(create, phases));

  it("muon with a clip, whose owners tell all ranks their norms", () =>
    check(() => muon({ nsType: "f32" }), [[6, "toOwners", "mean", "fromOwners"]], 1));

  it("dion over a mesh of 2 × 2 ranks", async () => {
    // Algorithm 2, P − 1 = 3: mean_weight(G)⁽ⁱ⁾, the norms of R⁽ⁱ⁾ and all X⁽ⁱ⁾ one way; orth(…) and the mean of R⁽ⁱ⁾
    // to the owners and back.
    for (const matrices of [6, 18]) {
      const shapes = Array.from({ length: matrices }, () => [8, 8] as const);
      const options = { steps: 2, parallel: { data: 2, weight: 2 } };
      const ranks = await trainMatrices(
        4,
        () => dion({ rank: 2 }),
        shapes,
        (...seed) => noise(64, ...seed),
        options,
      );
      for (const { messages } of ranks.flat()) expect(messages).toBe(3 * 3 + 2 * 6);
    }
  });
});
