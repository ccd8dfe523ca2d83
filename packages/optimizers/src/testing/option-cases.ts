/** For tests: another value of every option of the optimizers and of the compressions of gradients. */
import { v } from "@terse/options";
import { algorithms, gradientCompressions } from "../index.ts";

/** Another value of each option, and the other options without which it would not count. */
export type Cases = Readonly<Record<string, readonly [to: unknown, beside?: object]>>;

const decay: Cases = { weightDecay: [0.5] };
const betas: Cases = { beta1: [0.5], beta2: [0.5], ...decay };
const adam: Cases = { ...betas, eps: [0.1] };
const votes: Cases = { zero: ["minus"], tie: ["minus"], ...decay };
const sync: Cases = { momentumSync: [{ segments: "all", every: 3 }] };
const ratios: Cases = { minRatio: [5, { maxRatio: 10 }], maxRatio: [0.02] };
const oneBit: Cases = { ...adam, warmup: [5], scale: ["fused"] };
const oneBitLamb: Cases = { ...oneBit, ...ratios, beta3: [0.5] };
const hasMomentum = { momentum: 0.9 };
const levels = { bits: 3 };
const free = { beta2: 0.9, threshold: 10, minFactor: 0.01, maxFactor: 100 }; // of bounds

/** Cases by hand, where the first value that fits would change nothing or would not be allowed alone. */
const chosenOfAlgorithms: Readonly<Record<string, Cases>> = {
  sgd: { momentum: [0.5, hasMomentum], dampening: [0.5, hasMomentum], nesterov: [true, hasMomentum], ...decay },
  signsgd: votes,
  signum: { ...votes, beta: [0.5] },
  adamw: adam,
  lion: { ...betas, zero: ["minus"] },
  lamb: { ...adam, ...ratios, variant: ["deepspeed"] },
  "one-bit-adam": oneBit,
  "lamb-basic-one-bit": oneBitLamb,
  "one-bit-lamb": {
    ...oneBitLamb,
    beta2: [0.5, free],
    minFactor: [1.2],
    maxFactor: [0.7],
    threshold: [0.01, free],
    squareRoot: [true, free],
    decayCorrection: [true, { ...free, weightDecay: 1 }],
  },
  "distributed-lion": { ...betas, ...votes, ...sync, vote: ["average"], maskEvery: [2] },
  "lion-cub": {
    ...betas,
    ...votes,
    ...sync,
    bits: [3],
    sumBits: [6],
    quantizer: ["linf", levels],
    sum: ["direct", levels],
    seed: [1, { ...levels, quantizer: "linf" }],
    maskEvery: [2],
  },
  muon: {
    momentum: [0.5],
    nesterov: [false],
    ...decay,
    nsCoefficients: [[2, -1.5, 0.5]],
    nsSteps: [2],
    nsType: ["bf16", { nsType: "f32" }],
    eps: [1],
    adjustLrFn: ["match_rms_adamw"],
  },
  "sign-muon": {
    momentum: [0.5],
    nesterov: [false],
    ...decay,
    nsSteps: [1],
    nsType: ["bf16", { nsType: "f32" }],
    eps: [1e6], // the signs of M alone
    tie: ["plus"],
  },
  dion: {
    momentum: [0.5],
    rank: [2],
    orientation: ["longer"],
    orthonormalize: ["cholesky-qr"],
    errorFeedback: [false],
    approximate: ["svd"],
    ...decay,
    eps: [0.9],
    seed: [1],
  },
  "zero-one-adam": {
    ...adam,
    freeze: [5],
    kappa: [4],
    doubling: [4],
    localSteps: [1],
    early: ["buffer"],
    scale: ["fused"],
  },
  demo: {
    decay: [0.5],
    k: [5],
    chunk: [2],
    ...decay,
    sign: [false],
    over: ["senders", { sign: false }],
    rateInMomentum: [true],
  },
};

const chosenOfCompressions: Readonly<Record<string, Cases>> = {
  codec: {
    codec: ["f16"],
    errorFeedback: [false],
    decay: [0.5],
    bits: [3, { codec: "l1", bits: 4 }],
    block: [8],
    ratio: [0.5, { codec: "top-k", ratio: 0.1 }],
    indices: ["elias-fano", { codec: "top-k", ratio: 0.1 }],
    values: ["sign", { codec: "top-k", ratio: 0.1 }],
    k: [2, { codec: "dct-top-k", block: 8, k: 1 }],
    clip: [1, { codec: "terngrad", errorFeedback: false, clip: 2 }],
    seed: [1, { codec: "qsgd", errorFeedback: false, bits: 4 }],
  },
  "ef-signsgd": {},
  qsgd: { bits: [2], bucket: [8], seed: [1] },
  "lion-steps": { unit: [0.5, { unit: 0.01, steps: 10 }], steps: [3, { unit: 0.01, steps: 10 }] },
  terngrad: { clip: [1], scaler: ["own"], seed: [1] },
  graddrop: { ratio: [0.5], threshold: ["model"] },
  dgc: {
    ratio: [0.5],
    momentum: [0.5],
    nesterov: [true],
    factorMasking: [false, { ratio: 0.1 }],
    clip: [0.1],
    warmup: [8],
    warmupRatios: ["exponential"],
  },
  powersgd: {
    matrixApproximationRank: [2],
    startPowerSGDIter: [5],
    minCompressionRate: [3],
    useErrorFeedback: [false],
    warmStart: [false],
    randomSeed: [1, { warmStart: false }],
  },
};

export const ofAlgorithms: Readonly<Record<string, Cases>> = casesOf(algorithms, chosenOfAlgorithms);
export const ofCompressions: Readonly<Record<string, Cases>> = casesOf(gradientCompressions, chosenOfCompressions);

interface Entry {
  readonly options: { readonly entries: Readonly<Record<string, v.GenericSchema>> };
}

function casesOf(registry: object, chosen: Readonly<Record<string, Cases>>): Readonly<Record<string, Cases>> {
  return Object.fromEntries(
    Object.entries(registry as Readonly<Record<string, Entry>>).map(([name, { options }]) => {
      const cases = Object.entries(options.entries).map(([option, schema]): [string, Cases[string]] => [
        option,
        chosen[name]?.[option] ?? [otherValue(schema, `${name}.${option}`)],
      ]);
      return [name, Object.fromEntries(cases)];
    }),
  );
}

interface Described extends v.GenericSchema {
  readonly wrapped?: Described; // of optional
  readonly default?: unknown;
  readonly options?: readonly unknown[]; // of picklist
}

/** A value that the schema takes, other than its default. */
function otherValue(schema: Described, path: string): unknown {
  const { wrapped = schema, default: standard } = schema;
  const words = wrapped.type === "picklist" ? wrapped.options! : [];
  const fits = [...words, true, false, 0.5, 0.25, 2, 3].find((value) => value !== standard && v.is(schema, value));
  if (fits === undefined) throw new Error(`testing/option-cases.ts: give another value of ${path} than its default`);
  return fits;
}
