/** For tests: matrices that go through a few steps on some ranks, with gradients that anyone can make again. */
import { Arena, fromTypedArray, Module, ModuleList, noGrad, Parameter } from "@terse/tensor";
import { type Algorithm, Optimizer, type Parallel, type StoredState } from "../index.ts";
import { type Matrix, rowsOf } from "./matrices.ts";
import { onRanks } from "./on-ranks.ts";
import { savesOf, stored } from "./stored.ts";

export type Shape = readonly [m: number, n: number];

class Layer extends Module {
  readonly weight: Parameter;
  constructor(values: Float32Array, shape: Shape) {
    super();
    this.weight = new Parameter(fromTypedArray(values, shape), { role: "matrix" });
  }
}

class Matrices extends Module {
  readonly layers: ModuleList<Layer>;
  constructor(shapes: readonly Shape[], start: (layer: number, n: number) => Float32Array) {
    super();
    this.layers = new ModuleList(shapes.map((shape, layer) => new Layer(start(layer, shape[0] * shape[1]), shape)));
  }
}

/** A matrix of rank `rank`, for a step and a layer. */
export type Gradients = (rank: number, step: number, layer: number) => ArrayLike<number>;

/** Numbers in [−1, 1) that look random, another sequence for each seed. */
export function noise(n: number, ...seed: readonly number[]): Float32Array {
  let state = seed.reduce((hash, part) => Math.imul(hash ^ part, 0x9e3779b1) + 0x7f4a7c15, 0x2545f491);
  return Float32Array.from({ length: n }, () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (((t ^ (t >>> 14)) >>> 9) - 2 ** 22) / 2 ** 22;
  });
}

export interface Trained {
  readonly X: readonly Matrix[]; // by layer
  readonly state: ReadonlyMap<string, Float32Array>;
  readonly bytes: number; // of this step, with headers
  readonly closed: number; // bytes of this step by closed form, without headers
  readonly messages: number;
}

/** What every rank has after each step: visited[rank][step]. `replace`: state at the start, by its name in a save. */
export function trainMatrices(
  ranks: number,
  algorithm: () => Algorithm,
  shapes: readonly Shape[],
  gradients: Gradients,
  {
    steps,
    lr = 0.01,
    start = (layer, n) => noise(n, 77, layer),
    replace = {},
    parallel,
    bucket,
    clip = 0,
    from,
  }: {
    steps: number;
    lr?: number;
    start?: (layer: number, n: number) => Float32Array;
    replace?: Readonly<Record<string, Float32Array>>;
    parallel?: Parallel;
    bucket?: number;
    clip?: number;
    /** The ranks' saves and parameters after `at` steps of another run, from which this run goes on. */
    from?: { at: number; saves: readonly StoredState[]; X: readonly Matrix[] };
  },
): Promise<Trained[][]> {
  return onRanks(ranks, async (group) => {
    const begins = from ? (layer: number) => Float32Array.from(from.X[layer]!.flat()) : start;
    const arena = new Arena(new Matrices(shapes, begins));
    const options = { ...(parallel && { parallel }), ...(bucket && { bucket }) };
    await using optimizer = new Optimizer(arena, group, { algorithm: algorithm(), clip, ...options });
    const { tensors, scalars } = await stored(optimizer);
    const begun = new Map([...tensors].map(([name, values]) => [name, replace[name] ?? values]));
    await optimizer.restore(from?.at ?? 0, from?.saves ?? savesOf(group.rank, ranks, { tensors: begun, scalars }));
    const visited: Trained[] = [];
    for (let step = optimizer.steps; step < steps; step++) {
      for (const [layer, { offset, length }] of arena.segments.entries()) {
        const g = Float32Array.from(gradients(group.rank, step, layer));
        noGrad(() => arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(g)));
      }
      const closed = optimizer.bytesSent();
      const { bytes, messages } = await optimizer.step({ lr });
      const θ = (await arena.parameters.toTypedArray()) as Float32Array;
      const X = arena.segments.map(({ offset, shape }) => rowsOf(θ, shape as Shape, offset));
      visited.push({
        X,
        state: (await stored(optimizer)).tensors as Map<string, Float32Array>,
        bytes,
        messages,
        closed,
      });
    }
    return visited;
  });
}
