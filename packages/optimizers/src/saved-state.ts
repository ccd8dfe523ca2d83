/**
 * The state of an optimizer as it is saved, by name, and how each kind of state (algorithms/state.ts) is carried to
 * another number of ranks.
 *
 *   elements     <key>.<parameter>                     its elements
 *   replicated   <key>.<first parameter of the vector>
 *   owned        <key>.<parameter>[<begin>:<end>]      the elements of the parameter that this rank owns
 *   shards       <key>.<parameter>[<rows or columns> <index> of <count>]
 *   scalars      <key>.<first parameter of the vector>, or <key> of the optimizer as a whole
 */
import { fromTypedArray, noGrad, type Tensor, type TypedArray } from "@terse/tensor";
import { settle } from "./algorithms/settle.ts";
import type { Shard } from "./algorithms/state.ts";
import type { Span } from "./parameter-groups.ts";

/** What one rank saves of an optimizer. */
export interface SavedState {
  readonly tensors: ReadonlyMap<string, Tensor>; // views of the state, on its device
  readonly scalars: Readonly<Record<string, Scalar>>;
}

/** A `SavedState` as it is read from files: the tensors are arrays. */
export interface StoredState {
  readonly tensors: ReadonlyMap<string, TypedArray>;
  readonly scalars: Readonly<Record<string, Scalar>>;
}

/** A saved number of an algorithm, or a list of them, such as one for each layer. */
export type Scalar = number | readonly number[];

/** The error of a saved state that does not fit this optimizer and model. */
export class SavedStateError extends Error {
  override name = "SavedStateError";
}

/** Refuses what is no number of steps, and no saves of ranks. Throws TypeError. */
export function checkSaves(steps: unknown, saves: unknown): void {
  if (!Number.isInteger(steps) || (steps as number) < 0)
    throw new TypeError(`restore: expected the number of steps that the saves were made after, got ${String(steps)}`);
  const wrong = (what: string) =>
    new TypeError(
      `restore: ${what}; give a list with { tensors, scalars } of each rank's state(), where tensors is a Map of names to typed arrays`,
    );
  if (!Array.isArray(saves) || saves.length === 0) throw wrong("there are no saves");
  for (const [rank, save] of (saves as Partial<StoredState | undefined>[]).entries()) {
    if (!(save?.tensors instanceof Map) || typeof save.scalars !== "object")
      throw wrong(`the save of rank ${rank} is no state`);
    const [name] = [...save.tensors].find(([, values]) => !ArrayBuffer.isView(values)) ?? [];
    if (name !== undefined) throw wrong(`${name}, in the save of rank ${rank}, is no typed array`);
  }
}

/** What the ranks of a run have saved. */
interface Saves {
  readonly all: readonly StoredState[];
  readonly own: StoredState | undefined; // this rank's, in a run with as many ranks
}

/** A tensor of the state, a view, and how its values are found in saves. */
type Entry = readonly [name: string, tensor: Tensor, valuesIn: (saves: Saves) => TypedArray];

/** The elements [begin, end) of what the ranks own of a parameter. */
interface Part {
  readonly of: string;
  readonly begin: number;
  readonly end: number;
  readonly length: number; // of the parameter
}

/** The state of all spans. */
export function savedStateOf(spans: readonly Span[]): SavedState {
  for (const { state } of spans) settle(state);
  return {
    tensors: new Map(entriesOf(spans).map(([name, tensor]) => [name, tensor])),
    scalars: Object.fromEntries(
      spans.flatMap(({ vector, state }) =>
        Object.entries(state.scalars ?? {}).map(([key, value]) => [scalarName(key, vector), value]),
      ),
    ),
  };
}

/** Where a run goes on from its saves. */
interface Going {
  readonly step: number;
  readonly rank: number;
  readonly ranks: number;
  /** What compresses gradients begins anew: saves have nothing of it. */
  readonly compressesAnew?: boolean | undefined;
}

/**
 * Sets the state of all spans from what the ranks of a run have saved after `step` steps, and returns the numbers.
 * SavedStateError where a name is missing, or an option comes too late; nothing has changed then.
 */
export function restoreSpans(
  spans: readonly Span[],
  saves: readonly StoredState[],
  { step, rank, ranks, compressesAnew }: Going,
): StoredState["scalars"] {
  const own = saves.length === ranks ? saves[rank]! : undefined;
  const saved = compressesAnew ? spans.map(withoutCompression) : spans;
  const found = entriesOf(saved).map(([, tensor, valuesIn]) => ({ tensor, values: valuesIn({ all: saves, own }) }));
  const numbers = (own ?? saves[0]!).scalars;
  const scalars = saved.map((span) => adopted(span, numbers, step));
  for (const { tensor, values } of found) {
    using stored = fromTypedArray(values, tensor.shape);
    noGrad(() => tensor.copy_(stored));
  }
  for (const [i, { state }] of spans.entries()) {
    Object.assign(state.scalars ?? {}, scalars[i]);
    clear(state.unsettled);
    clear(state.derived);
  }
  return numbers;
}

/** The span with the state that it has without a compression of its gradients. */
function withoutCompression(span: Span): Span {
  const { algorithm, state } = span;
  const kinds = Object.entries(state).map(([kind, all]: [string, Record<string, unknown> | undefined]) => {
    const kept = Object.entries(all ?? {}).filter(([name]) => !algorithm.isOfCompression?.(name));
    return [kind, Object.fromEntries(kept)] as const;
  });
  return { ...span, state: Object.fromEntries(kinds) };
}

function clear(kind: Record<string, unknown> = {}): void {
  for (const name of Object.keys(kind)) delete kind[name];
}

/** The saved numbers of a span, as its algorithm takes them. */
function adopted({ algorithm, vector, state }: Span, numbers: StoredState["scalars"], step: number) {
  const own = Object.keys(state.scalars ?? {}).map((key) => {
    const value = numbers[scalarName(key, vector)];
    if (value === undefined)
      throw new SavedStateError(
        `there is no number ${scalarName(key, vector)}: the save belongs to another optimizer or model; take the options and the model of the save`,
      );
    return [key, typeof value === "number" ? value : [...value]] as const;
  });
  const scalars = Object.fromEntries(own);
  return algorithm.adopt?.(scalars, step) ?? scalars;
}

const scalarName = (key: string, { segments }: Span["vector"]): string => `${key}.${segments[0]!.name}`;

/** Every tensor of the state. */
const entriesOf = (spans: readonly Span[]): Entry[] =>
  spans.flatMap((span) => [...elementsOf(span), ...replicatedOf(span), ...shardsOf(span), ...ownedOf(span)]);

/** Of other ranks: the mean. */
function* elementsOf({ vector, state, algorithm }: Span): Generator<Entry> {
  for (const [key, tensor] of Object.entries(state.elements ?? {})) {
    // What several ranks own, and a single one does not: it is added.
    const added =
      vector.ranks === 1 ? Object.entries(state.owned ?? {}).find(([, { alone }]) => alone === key) : undefined;
    for (const { name, offset, length } of vector.segments) {
      const view = algorithm.splits === "at segments" ? tensor : tensor.narrow(0, offset - vector.offset, length);
      const saved = `${key}.${name}`;
      yield [
        saved,
        view,
        ({ all, own }) => {
          if (own) return read(own, saved, view);
          const mean = meanOf(all.map((save) => read(save, saved, view)));
          const shares = added ? cut({ of: `${added[0]}.${name}`, begin: 0, end: length, length }, all) : [];
          for (const [i, value] of shares.entries()) mean[i]! += value;
          return mean;
        },
      ];
    }
  }
}

/** The same on all ranks. */
function* replicatedOf({ vector, state }: Span): Generator<Entry> {
  for (const [key, tensor] of Object.entries(state.replicated ?? {})) {
    const saved = `${key}.${vector.segments[0]!.name}`;
    yield [saved, tensor, ({ all, own }) => read(own ?? all[0]!, saved, tensor)];
  }
}

/** Of other ranks, or where this one had another slice: cut out of all slices. */
function* shardsOf({ vector, state }: Span): Generator<Entry> {
  for (const [key, shard] of Object.entries(state.shards ?? {})) {
    const { values, of: along, index, count } = shard;
    const of = `${key}.${vector.segments[0]!.name}`;
    const saved = `${of}[${along} ${index} of ${count}]`;
    yield [
      saved,
      values,
      ({ all, own }) => (own?.tensors.has(saved) ? read(own, saved, values) : sliceOf(of, shard, all)),
    ];
  }
}

/** Of other ranks: cut out of the shares of all. */
function* ownedOf({ vector, state }: Span): Generator<Entry> {
  for (const [key, { begin, values, alone }] of Object.entries(state.owned ?? {}))
    for (const { name, offset, length } of vector.segments) {
      // The part of the parameter's elements [0, length) that lies in this rank's share.
      const start = offset - vector.offset;
      const [from, to] = [Math.max(begin, start), Math.min(begin + values.length, start + length)];
      if (from >= to) continue;
      const part = { of: `${key}.${name}`, begin: from - start, end: to - start, length };
      yield [
        `${part.of}[${part.begin}:${part.end}]`,
        values.narrow(0, from - begin, to - from),
        ({ all, own }) => {
          const hadNone = alone !== undefined && !own && all.length === 1;
          return hadNone ? new Float32Array(to - from) : cut(part, own ? [own] : all);
        },
      ];
    }
}

/** What a save has by this name. SavedStateError where it has nothing, or another length. */
function read({ tensors }: StoredState, name: string, { length }: Tensor): TypedArray {
  const stored = tensors.get(name);
  if (stored?.length === length) return stored;
  throw new SavedStateError(
    `there is no ${name} of ${length} elements: the save belongs to another optimizer or model; take the options and the model of the save`,
  );
}

/** The mean over the old ranks, and the very bits where all of them are alike. */
export function meanOf(ranks: readonly TypedArray[]): Float32Array {
  const of = ranks as readonly Float32Array[];
  const mean = new Float32Array(of[0]!.length);
  for (let i = 0; i < mean.length; i++) {
    const first = of[0]![i]!;
    let sum = 0;
    let alike = true;
    for (const values of of) {
      sum += values[i]!;
      alike &&= Object.is(values[i], first);
    }
    mean[i] = alike ? first : sum / of.length;
  }
  return mean;
}

/**
 * A slice of a matrix, out of the slices that the ranks of a run have saved, of the mean where several have the same.
 */
function sliceOf(of: string, { values: slice, of: along, index, count }: Shard, saves: readonly StoredState[]) {
  const [m, n] = slice.shape as [number, number];
  const found = new Map<number, TypedArray[]>();
  let parts = 0;
  for (const { tensors } of saves)
    for (const [name, stored] of tensors) {
      const [, was, place, total] = name.startsWith(`${of}[`)
        ? (/\[(rows|columns) (\d+) of (\d+)\]$/.exec(name) ?? [])
        : [];
      if (was !== along || stored.length * Number(total) !== m * n * count) continue;
      parts = Number(total);
      found.set(Number(place), [...(found.get(Number(place)) ?? []), stored]);
    }
  if (found.size !== parts || parts === 0)
    throw new SavedStateError(
      `there are ${found.size} of ${parts} shards of ${of}: the save belongs to another optimizer or model, or a rank's file is missing, or the run had another parallel.weight: take that one again`,
    );
  // The whole matrix, as slices of rows; a slice of columns has a part of every row.
  const [outer, inner] = along === "rows" ? [1, m * n] : [m, n];
  const was = (inner * count) / parts;
  const values = new Float32Array(m * n);
  for (const [place, copies] of found) {
    const saved = meanOf(copies);
    for (let row = 0; row < outer; row++)
      for (let i = 0; i < was; i++) {
        const at = place * was + i - index * inner;
        if (at >= 0 && at < inner) values[row * inner + at] = saved[row * was + i]!;
      }
  }
  return values;
}

/** A part of what the ranks own of a parameter, out of the shares of all that hold some of it. */
function cut({ of, begin, end, length }: Part, saves: readonly StoredState[]): Float32Array {
  const values = new Float32Array(end - begin);
  let found = 0;
  for (const { tensors } of saves)
    for (const [name, stored] of tensors) {
      if (!name.startsWith(`${of}[`)) continue;
      const [from, to] = name
        .slice(of.length + 1, -1)
        .split(":")
        .map(Number) as [number, number];
      const [first, last] = [Math.max(begin, from), Math.min(end, to)];
      if (first >= last || to > length || stored.length !== to - from) continue;
      values.set((stored as Float32Array).subarray(first - from, last - from), first - begin);
      found += last - first;
    }
  if (found !== end - begin)
    throw new SavedStateError(
      `${of} has ${found} of the elements ${begin} to ${end - 1}: the save belongs to another optimizer or model, or a rank's file is missing; take the options, the model and all files of the save`,
    );
  return values;
}
