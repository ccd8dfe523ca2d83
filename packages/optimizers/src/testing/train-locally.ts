/**
 * For tests: a model of scalars, vectors or matrices whose gradients the test gives, trained with local steps on some
 * ranks.
 */
import { StepRefusedError } from "@terse/exchange";
import { Arena, fromTypedArray, Module, ModuleList, noGrad, Parameter } from "@terse/tensor";
import {
  hostGroups,
  LocalSteps,
  type LocalStepsOptions,
  type StepReport,
  type StepWatch,
  type StoredState,
  sgd,
} from "../index.ts";
import { onRanks } from "./on-ranks.ts";

class Layer extends Module {
  readonly weight: Parameter;
  constructor(values: Float32Array, shape: readonly number[] = [values.length]) {
    super();
    this.weight = new Parameter(fromTypedArray(values, shape), { role: shape.length > 1 ? "matrix" : "vector" });
  }
}

class Layers extends Module {
  readonly layers: ModuleList<Layer>;
  constructor(values: readonly Float32Array[], shape?: readonly number[]) {
    super();
    this.layers = new ModuleList(values.map((each) => new Layer(each, shape)));
  }
}

/** The gradient of an element, which is `value` now: of rank `rank` in step `step`, of layer `layer`. */
export type GradientOf = (at: { rank: number; step: number; layer: number; element: number; value: number }) => number;

/** A rank after a step: the layers of its own θ, and of θ̄. */
export interface Seen {
  readonly own: readonly (readonly number[])[];
  readonly shared: readonly (readonly number[])[];
  readonly bytes: number; // of this step
  readonly ofRound: number | undefined; // of them, for the round that it uses
  readonly closed: number; // by closed form
}

/** A step that was refused ends the run. */
interface Refused {
  readonly error: StepRefusedError;
  readonly shared: Seen["shared"];
}

export interface LocalRun {
  readonly steps: number;
  readonly lr?: number;
  readonly sizes?: readonly number[]; // elements of each layer
  readonly shape?: readonly number[]; // of each layer, if they are no vectors
  readonly start?: number;
  /** Goes on from what each rank has read of the saves, with the model at θ̄. */
  readonly from?: {
    readonly at: number;
    readonly saves: (rank: number) => readonly StoredState[];
    readonly shared: Seen["shared"];
  };
  /** Steps after which the shared copy is looked at, which waits for what is under way. Every one unless given. */
  readonly looks?: (step: number) => boolean;
  /** Milliseconds that a rank waits before a step. */
  readonly waits?: (rank: number, step: number) => number;
  /** The host of each rank, where the ranks of a host take their steps together. */
  readonly hosts?: readonly number[];
  /** Looks on at a rank's steps. */
  readonly watch?: (rank: number) => StepWatch;
}

export type Given = Partial<LocalStepsOptions> & Pick<LocalStepsOptions, "syncEvery">;

/** What every rank has after each step, by rank, and its save at the end. */
export function trainLocally(
  ranks: number,
  given: Given,
  gradient: GradientOf,
  { steps, lr = 0.1, sizes = [1, 1], start = 1, from, looks = () => true, waits, watch, hosts, shape }: LocalRun,
): Promise<{ seen: Seen[]; save: StoredState; refused: Refused | undefined }[]> {
  return onRanks(ranks, async (base) => {
    const { rank } = base;
    const values = sizes.map((n, i) => Float32Array.from({ length: n }, (_, k) => from?.shared[i]?.[k] ?? start));
    const arena = new Arena(new Layers(values, shape));
    const plain = { algorithm: sgd() };
    const groups = hosts && (await hostGroups(base, hosts));
    const options = { inner: plain, outer: plain, outerLr: 1, ...given, hosts: groups };
    await using optimizer = new LocalSteps(arena, (await base.split(0))!, options);
    optimizer.watch = watch?.(rank);
    if (from) await optimizer.restore(from.at, from.saves(rank));
    const layersNow = async () => {
      const all = (await arena.parameters.toTypedArray()) as Float32Array;
      return arena.segments.map(({ offset, length }) => [...all.subarray(offset, offset + length)]);
    };
    const seen: Seen[] = [];
    let refused: Refused | undefined;
    for (let step = from?.at ?? 0; step < steps; step++) {
      const milliseconds = waits?.(rank, step) ?? 0;
      if (milliseconds > 0) await new Promise((done) => setTimeout(done, milliseconds));
      for (const [layer, own] of (await layersNow()).entries()) {
        const { offset, length } = arena.segments[layer]!;
        const g = own.map((value, element) => gradient({ rank, step, layer, element, value }));
        noGrad(() => arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(Float32Array.from(g))));
      }
      const closed = optimizer.bytesSent();
      let report: StepReport;
      try {
        report = await optimizer.step({ lr });
      } catch (error) {
        if (!(error instanceof StepRefusedError)) throw error;
        refused = { error, shared: await optimizer.shared(layersNow) };
        break;
      }
      const own = await layersNow();
      seen.push({
        own,
        shared: looks(step) ? await optimizer.shared(layersNow) : [],
        bytes: report.bytes,
        ofRound: report.round?.bytes,
        closed,
      });
    }
    const { tensors, scalars } = await optimizer.state();
    const read = new Map<string, Float32Array>();
    for (const [name, tensor] of tensors) read.set(name, ((await tensor.toTypedArray()) as Float32Array).slice());
    return { seen, refused, save: { tensors: read, scalars: structuredClone(scalars) } };
  });
}

/** Numbers in [−1, 1) that look random. */
function noise(...seed: readonly number[]): number {
  let state = seed.reduce((hash, part) => Math.imul(hash ^ part, 0x9e3779b1) + 0x7f4a7c15, 0x2545f491);
  state = Math.imul(state ^ (state >>> 15), 0x85ebca6b);
  return ((state ^ (state >>> 13)) >>> 8) / 2 ** 23 - 1;
}

/** Pulls each element to a place of its own on each rank, with noise. */
export const wandering: GradientOf = ({ rank, step, layer, element, value }) =>
  value - noise(rank, layer, element) + 0.3 * noise(rank, step, layer, element);
