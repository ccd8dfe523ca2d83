/**
 * For tests: every algorithm and every compression of gradients, and the options that change what is sent, or what is
 * kept.
 */
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
  gradientCompressions,
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
  algorithms as registry,
  sgd,
  signsgd,
  signum,
  terngrad,
  zeroOneAdam,
} from "../index.ts";

/** Entries of a registry that are not listed yet, with their defaults: a new one is in every test of all. */
const unlisted = <Made>(registry: object, listed: object): Record<string, () => Made> =>
  Object.fromEntries(Object.entries(registry).filter(([name]) => !Object.hasOwn(listed, name)));

const listedAlgorithms: Record<string, () => Algorithm> = {
  lion: () => lion({ weightDecay: 0.1 }),
  adamw: () => adamw(),
  "distributed-lion": () => distributedLion({ weightDecay: 0.1 }),
  "distributed-lion, average": () => distributedLion({ vote: "average" }),
  "lion-cub": () => lionCub({ weightDecay: 0.1 }),
  "lion-cub, 5 bits": () => lionCub({ weightDecay: 0.1, bits: 5 }),
  "lion-cub, zeros held": () => lionCub({ weightDecay: 0.1, zero: "hold" }),
  sgd: () => sgd({ momentum: 0.9 }),
  signum: () => signum(),
  signsgd: () => signsgd(),
  lamb: () => lamb(),
  muon: () => muon(),
  dion: () => dion({ rank: 3 }),
  "one-bit-adam": () => oneBitAdam({ warmup: 2 }),
  "one-bit-lamb": () => oneBitLamb({ warmup: 2 }),
  "lamb-basic-one-bit": () => lambBasicOneBit({ warmup: 2 }),
  "zero-one-adam": () => zeroOneAdam({ freeze: 2, doubling: 1, localSteps: 2 }),
  demo: () => demo({ chunk: 4, k: 3 }),
};

/** All of the registry; phases change after the second step. */
export const algorithms = { ...listedAlgorithms, ...unlisted<Algorithm>(registry, listedAlgorithms) };

export const variants: Record<string, () => Algorithm> = {
  "lion-cub, 8 bits": () => lionCub({ bits: 8 }),
  "lion-cub, levels that all ranks' sum leaves in 8 bits, by one all-reduce": () =>
    lionCub({ sumBits: 8, sum: "direct" }),
  "lion-cub, levels that are drawn": () => lionCub({ bits: 4, quantizer: "linf" }),
  "lion-cub, averaged momenta": () => lionCub({ momentumSync: { segments: "all", every: 2 } }),
  "lion-cub, 8 bits, late averages of some momenta": () =>
    lionCub({ bits: 8, momentumSync: { segments: "first-and-last", every: 2, late: true } }),
  "lion-cub, a mask": () => lionCub({ maskEvery: 2 }),
  "distributed-lion, a mask": () => distributedLion({ maskEvery: 2, tie: "alternate" }),
  "distributed-lion, zeros held": () => distributedLion({ zero: "hold" }),
  "sgd, nesterov": () => sgd({ momentum: 0.9, nesterov: true, weightDecay: 0.1 }),
  "muon, without Nesterov, a triple for each iteration": () =>
    muon({
      nesterov: false,
      nsCoefficients: [
        [4.1, -6.9, 2.9],
        [2, -1.5, 0.5],
      ],
    }),
  "dion, without error feedback": () => dion({ rank: 3, errorFeedback: false }),
  "dion, own errors, on the longer side": () => dion({ rank: 3, errorFeedback: "own", orientation: "longer" }),
  "dion, by singular values": () => dion({ rank: 3, approximate: "svd" }),
  "one-bit-lamb as DeepSpeed": () => oneBitLamb({ warmup: 2, squareRoot: true, decayCorrection: true }),
  "zero-one-adam as DeepSpeed": () =>
    zeroOneAdam({ freeze: 2, kappa: 1, doubling: 1, localSteps: 2, early: "gradient" }),
  "demo over senders, without the sign": () => demo({ chunk: 4, k: 3, over: "senders", sign: false }),
  "adamw with powersgd": () => compressed(adamw(), powersgd({ minCompressionRate: 1 })),
  "sgd with dgc": () => compressed(sgd(), dgc({ ratio: 0.1, warmup: 4 })),
  "lion with terngrad": () => compressed(lion(), terngrad()),
  "lamb with qsgd": () => compressed(lamb(), qsgd({ bucket: 16 })),
  "adamw with scaled signs": () => compressed(adamw(), anyCodec({ codec: "scaled-sign" })),
};

const listedCompressions: Record<string, () => GradientCompression> = {
  codec: () => anyCodec({ codec: "scaled-sign" }),
  "codec, few elements": () => anyCodec({ codec: "top-k", ratio: 0.1 }),
  "codec, whole numbers": () => anyCodec({ codec: "int8", errorFeedback: false }),
  "ef-signsgd": () => efSignsgd(),
  qsgd: () => qsgd({ bucket: 16 }),
  terngrad: () => terngrad(),
  "terngrad, own scalers": () => terngrad({ scaler: "own" }),
  graddrop: () => graddrop({ ratio: 0.1 }),
  dgc: () => dgc({ ratio: 0.1 }),
  powersgd: () => powersgd({ minCompressionRate: 1 }),
  "lion-steps": () => lionSteps({ unit: 0.01, steps: 10 }),
};

/** All of the registry, on single layers. */
export const compressions = {
  ...listedCompressions,
  ...unlisted<GradientCompression>(gradientCompressions, listedCompressions),
};

/** Algorithms that work on the model as one vector, and the option with which they work on single layers. */
export const wholes: Record<string, { create: () => Algorithm; perLayer: string }> = {
  ...Object.fromEntries(
    Object.entries({ "one-bit-adam": oneBitAdam, "one-bit-lamb": oneBitLamb, "lamb-basic-one-bit": lambBasicOneBit })
      .flatMap(([name, create]) => (["fused", "momentum-scaled"] as const).map((scale) => ({ name, create, scale })))
      .map(({ name, create, scale }) => [
        `${name}, ${scale}`,
        { create: () => create({ warmup: 2, scale }), perLayer: `${name}.scale: per-layer` },
      ]),
  ),
  "zero-one-adam, fused": {
    create: () => zeroOneAdam({ freeze: 2, doubling: 1, localSteps: 2, scale: "fused" }),
    perLayer: "zero-one-adam.scale: per-layer",
  },
  "sgd with graddrop of the model": {
    create: () => compressed(sgd(), graddrop({ ratio: 0.1, threshold: "model" })),
    perLayer: "graddrop.threshold: layer",
  },
};
