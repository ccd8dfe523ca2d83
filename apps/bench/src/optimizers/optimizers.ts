/**
 * `bench optimizers`: the local work of a step over 64 Mi parameters in 16 square matrices, one thread, compared with
 * PyTorch's and with the speed of this machine's memory. The sides take turns, and each ratio is of one round.
 *
 *   over_torch    our seconds ÷ torch's for the same update (peers/optimizers.py)
 *   over_stream   bytes that the step must touch / seconds / streaming (memory.ts). An array counts once for each pass
 *                 that the method needs over all of it. LAMB needs a layer's norms before it changes the layer, so
 *                 θ, m and v count twice
 *
 * A step is that of the algorithm with its exchange, without clipping, as torch's is. Methods that compress run on two
 * ranks in this thread, and count half: a rank encodes all its elements, adds its share of everybody's, and decodes
 * all. The copies that carry the messages count too.
 */
import { type Group, loopback } from "@terse/collectives";
import { type FromOwnerOptions, openExchange } from "@terse/exchange";
import { sgdStep, useThreads } from "@terse/native-optimizers";
import {
  type Algorithm,
  algorithms,
  compressed,
  gradientCompressions,
  type OptimizerExchange,
  type State,
  type Vector,
} from "@terse/optimizers";
import { fromTypedArray, keep, noGrad, type Segment, setNumThreads, type Tensor, zeros } from "@terse/tensor";
import { arenaOfMatrices } from "../arena-of-matrices.ts";
import { type Measurement, median } from "../measurement.ts";
import { clocked, streamingSpeed } from "../memory.ts";
import { Peer } from "../peer.ts";
import type { Suite } from "../suite.ts";

const matrices = 16;
const side = 2048;
const n = matrices * side * side;
const rank = side / 8; // of Dion

interface Case {
  readonly create: () => Algorithm;
  /** Floats that a step must touch for each parameter. */
  readonly floats?: number;
  /** The name of the same update in peers/optimizers.py. */
  readonly peer?: string;
  readonly ranks?: 1 | 2;
  /** Steps before the first measured round. */
  readonly before?: number;
  readonly rounds?: number;
}

const of =
  (name: keyof typeof algorithms, options: object = {}) =>
  (): Algorithm =>
    (algorithms[name] as (options: object) => Algorithm)(options);

const bits = 2 / 32; // packed signs, written and read
// m, g and the worker's error; the server's error, of which each of two ranks has half
const compensated = 3 + 1 / 2 + bits;

const cases: Readonly<Record<string, Case>> = {
  sgd: { create: of("sgd", { momentum: 0.9 }), floats: 3, peer: "sgd" },
  lion: { create: of("lion", { weightDecay: 0.1 }), floats: 3, peer: "lion" },
  "lion-cub": { create: of("lion-cub", { weightDecay: 0.1 }), floats: 3 + bits, ranks: 2 },
  adamw: { create: of("adamw"), floats: 4, peer: "adamw" },
  lamb: { create: of("lamb"), floats: 4 + 3, peer: "lamb" },
  "one-bit-adam": { create: of("one-bit-adam", { warmup: 1 }), floats: compensated + 3, ranks: 2 },
  "one-bit-lamb": { create: of("one-bit-lamb", { warmup: 1 }), floats: compensated + 3 + 3, ranks: 2 },
  demo: { create: of("demo"), ranks: 2, rounds: 2 },
  muon: { create: of("muon"), peer: "muon", rounds: 3 },
  "muon, f32": { create: of("muon", { nsType: "f32" }), peer: "muon", rounds: 1 },
  [`dion, rank ${rank}`]: { create: of("dion", { rank }), peer: "dion" },
  [`dion, rank ${rank}, cholesky-qr`]: {
    create: of("dion", { rank, orthonormalize: "cholesky-qr" }),
    peer: "dion",
    rounds: 3,
  },
  "powersgd, rank 4, under sgd": {
    create: () =>
      compressed(of("sgd")(), gradientCompressions.powersgd({ matrixApproximationRank: 4, startPowerSGDIter: 2 })),
    peer: "powersgd",
    before: 3,
  },
  "dgc under sgd": { create: () => compressed(of("sgd")(), gradientCompressions.dgc({})), ranks: 2, rounds: 2 },
};

export const optimizers: Suite = {
  ...Object.fromEntries(Object.entries(cases).map(([name, each]) => [settingOf(name), () => steps(name, each)])),
  momentum: momenta,
};

function settingOf(name: string): string {
  return name.replaceAll(/,? /g, "-");
}

async function* steps(
  name: string,
  { create, floats, peer, ranks = 1, before = 2, rounds = 5 }: Case,
): AsyncGenerator<Measurement> {
  setNumThreads(1);
  useThreads(1);
  await using theirs =
    peer === undefined
      ? undefined
      : await Peer.start("optimizers.py", [peer, String(matrices), String(side), String(rank)], {
          OMP_NUM_THREADS: "1",
        });
  const groups = loopback(ranks);
  const ours = groups.map((group) => new Side(group, create()));
  const step = async () => {
    const began = performance.now();
    await Promise.all(ours.map((one) => one.step()));
    return (performance.now() - began) / 1000 / ranks;
  };
  const streaming = floats === undefined ? undefined : streamingSpeed(n / 4);
  const rows: { own: number; peer: number; stream: number }[] = [];
  for (let round = -before; round < rounds; round++) {
    const stream = streaming?.() ?? Number.NaN;
    const first = round % 2 === 0 ? await step() : undefined;
    const peerSeconds = (await theirs?.ask<{ seconds: number }>("step"))?.seconds ?? Number.NaN;
    const own = first ?? (await step());
    if (round >= 0) rows.push({ own, peer: peerSeconds, stream });
  }
  await Promise.all(groups.map((group) => group.close()));

  const inCase = { case: `${name}, 64 Mi parameters` };
  yield { ...inCase, metric: "step_ms", value: 1000 * median(rows.map(({ own }) => own)), unit: "ms" };
  if (peer !== undefined) {
    yield { ...inCase, metric: "torch_ms", value: 1000 * median(rows.map((row) => row.peer)), unit: "ms" };
    yield { ...inCase, metric: "over_torch", value: median(rows.map((row) => row.own / row.peer)), unit: "ratio" };
  }
  if (floats !== undefined) {
    const bytes = 4 * floats * n;
    const value = median(rows.map(({ own, stream }) => bytes / own / stream));
    yield { ...inCase, metric: "over_stream", value, unit: "ratio" };
  }
}

/**
 * The momenta of DGC and DeMo, without what chooses and sends the largest elements. DeMo's codec adds the gradient
 * while it reads it.
 */
async function* momenta(): AsyncGenerator<Measurement> {
  setNumThreads(1);
  useThreads(1);
  const [g, u, total] = [zeros([n]), zeros([n]), zeros([n])];
  const sgd = { lr: -1, momentum: 0.9, nesterov: false, dampening: 0, weightDecay: 0, first: false, gradientScale: 1 };
  const parts = [
    { name: "dgc, its momentum", floats: 3, work: () => sgdStep(total, u, g, sgd) },
    { name: "demo, its momentum", floats: 1, work: () => noGrad(() => u.mul_(0.999)) },
  ];
  for (const { name, floats, work } of parts) {
    const streaming = streamingSpeed(n / 4);
    const ratios: number[] = [];
    for (let round = -2; round < 7; round++) {
      const stream = streaming();
      const seconds = clocked(work);
      if (round >= 0) ratios.push((4 * floats * n) / seconds / stream);
    }
    yield { case: `${name}, 64 Mi parameters`, metric: "over_stream", value: median(ratios), unit: "ratio" };
  }
  for (const tensor of [g, u, total]) tensor.dispose();
}

/** One rank: an algorithm on the arena's vectors, as an Optimizer cuts them, with an exchange and without clipping. */
class Side {
  readonly #algorithm: Algorithm;
  readonly #exchange: OptimizerExchange;
  readonly #parts: readonly { θ: Tensor; g: Tensor; vector: Vector; state: State }[];
  #step = 0;

  constructor(group: Group, algorithm: Algorithm) {
    this.#algorithm = algorithm;
    const exchange = openExchange(group);
    const meanGradient = async (g: Tensor) => {
      await exchange.mean(g);
      return 1;
    };
    const meanGradientAtOwner = async (g: Tensor, options: FromOwnerOptions) => {
      await exchange.meanAtOwner(g, options);
      return 1;
    };
    this.#exchange = {
      ...exchange,
      meanGradient,
      meanGradientAtOwner,
      clipFactor: async () => 1,
      agreed: async () => {},
    };
    const { parameters, gradients, segments } = arenaOfMatrices(matrices, [side, side]);
    fill(gradients, group.rank);
    const data = Array.from({ length: group.size }, (_, r) => r);
    const cuts = algorithm.splits === "at segments" ? segments.map((segment) => [segment]) : [segments];
    this.#parts = cuts.map((cut, i) => {
      const [{ offset, shape }] = cut as [Segment];
      const lengths = cut.flatMap(({ length }) => [length, 0]); // matrices of this size have no pads
      const length = cut.reduce((sum, segment) => sum + segment.length, 0);
      const view = (flat: Tensor) => keep(flat.narrow(0, offset, length).view(cut.length > 1 ? [length] : shape));
      const owner = i % group.size;
      const vector = {
        n: length,
        offset,
        segments: cut,
        lengths,
        rank: group.rank,
        ranks: group.size,
        owner,
        mesh: { data, weight: [group.rank] },
      };
      const [θ, g] = [view(parameters), view(gradients)];
      return { θ, g, vector, state: algorithm.init(θ, vector) };
    });
  }

  async step(): Promise<void> {
    const step = this.#step++;
    const work = this.#parts.map(({ θ, g, vector, state }) =>
      this.#algorithm.step(θ, g, state, this.#exchange, { step, lr: 1e-4, gradientScale: 1, vector }),
    );
    await Promise.all(work);
  }
}

function fill(gradients: Tensor, rank: number): void {
  const pattern = Float32Array.from({ length: 65_521 }, (_, i) => Math.sin(i * i + rank) ** 3 / 100);
  using source = fromTypedArray(pattern);
  noGrad(() => {
    for (let at = 0; at < n; at += pattern.length) {
      const length = Math.min(pattern.length, n - at);
      gradients.narrow(0, at, length).copy_(source.narrow(0, 0, length));
    }
  });
}
