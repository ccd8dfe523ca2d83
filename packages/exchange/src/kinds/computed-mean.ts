/**
 * A function of the mean of a vector over the ranks, computed once, by the vector's owner, who sends the result to all.
 * The ranks share the work of several vectors, and have the same bits even where the function's last bits depend on the
 * processor, as QR and matrix products do.
 *
 *   x̄ ← (1/P) Σ_r x_r        in rank order; in f32 added in fp64 and rounded once
 *   into ← f(x̄)              the owner; all ranks, the owner too, read its bytes
 *
 * Up in the type of the run's means, down in the type of what owners compute, b_u and b_d bytes an element: 4 of f32, 2
 * of bf16 and f16, 1 of int8, with 4 more for each block of 512. A single rank rounds nothing.
 *
 * Its two halves are messages of their own where something else happens between them:
 *
 *   mean at the owner        x ← x̄ on the owner alone
 *   from the owner           x ← the owner's x
 *
 * The vectors of a round are carried together, in one of two ways that give the same bits:
 *
 *   by owners   every rank sends its vectors to their owners, who send the results to all ranks (by-owners.ts). For n
 *               elements up and k down, the owner sends b_d k bytes to each other rank, and the others b_u n bytes to
 *               the owner. With owners of equal shares this is (P − 1)/P · (b_u n + b_d k) bytes a rank, as an
 *               all-reduce sends. Messages: 2 (P − 1). Memory: b_u n bytes (P b_u n + 4 n at the owner, if P > 1), and
 *               b_d k bytes; 4 k more at an owner that rounds what it computes.
 *   by slices   every rank averages a slice of all vectors for the owners (by-slices.ts): about twice the bytes of
 *               equal shares, whatever the shares, and 4 (P − 1) messages. Taken where the busiest rank saves 32 KiB
 *               each way, as with fewer vectors than ranks, and nothing goes up in another type than f32.
 */
import type { Floats } from "@terse/codecs";
import { copy, type Group } from "@terse/collectives";
import { byOwners, byOwnersCost, type OneWay, type OwnerScheme } from "../by-owners/by-owners.ts";
import { bySlices, bySlicesCost, type OwnedSizes, type OwnedVector } from "../by-owners/by-slices.ts";
import { checkFinite, floatsAt } from "../by-owners/f32-wires.ts";
import { type VectorWires, vectorWires } from "../by-owners/vector-wires.ts";
import type { ChosenSchemes } from "../chosen-schemes.ts";
import type { Cost } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { scratchOf } from "../scratch.ts";
import { type Kind, nothing } from "./kind.ts";

export interface ComputedMeanOptions {
  /** The rank that computes, the same on every rank. */
  readonly owner: number;
  /**
   * f: reads the mean of n elements and writes all of the result. It is called on the owner alone, once, and may change
   * the mean. If it throws, the group is aborted; if its result is not finite, all ranks throw a StepRefusedError.
   */
  readonly compute: (mean: Float32Array, result: Float32Array) => void;
  /** The result, of any length that is the same on every rank; x unless given. */
  readonly into?: Floats | undefined;
}

export interface MeanAtOwnerOptions {
  /** The rank that gets the mean, the same on every rank. */
  readonly owner: number;
  /** Called on the owner when x holds the mean: before the promise settles, which may wait. */
  readonly arrived?: (() => void) | undefined;
}

/** Options of `fromOwner`. */
export interface FromOwnerOptions {
  /** The rank whose x all take, the same on every rank. */
  readonly owner: number;
}

/** `result`: the elements of the result, n unless given. */
export interface ComputedMeanMessage {
  readonly kind: "computedMean";
  readonly n: number;
  readonly owner: number;
  readonly result?: number | undefined;
}

/** The halves of a computed mean, where something else happens between them. */
export interface OneWayMessage {
  readonly kind: "meanAtOwner" | "fromOwner";
  readonly n: number;
  readonly owner: number;
}

/** The types of the wires up to owners, and down from them. */
interface Types {
  readonly up: VectorWires;
  readonly down: VectorWires;
}

const typesOf = ({ means, computed }: ChosenSchemes, ranks: number): Types => ({
  up: vectorWires(means.type, ranks),
  down: vectorWires(computed, ranks),
});

const owned = <O, M extends Sent>(
  name: M["kind"],
  only: OneWay | undefined,
  layOut: (group: Group, x: Floats, options: O, types: Types) => OwnedVector,
): Kind<Floats, O, OwnedVector, void, M> => ({
  name,
  memory: "stays",
  ask: (x, options, { group, schemes }) => layOut(group, x, options, typesOf(schemes, group.size)),
  carry: (vectors, context) => carryOwned(vectors, context, only),
  result: nothing,
  cost: (messages, ranks, rank, schemes) => ownedCosts(sizesOf(messages, ranks, schemes), ranks, rank, only),
});

/** into ← f(mean over ranks of x), computed once, by its owner, who sends it to all; into is x unless given. */
export const computedMean = owned<ComputedMeanOptions, ComputedMeanMessage>("computedMean", undefined, computedVector);

/** x ← mean over ranks of x, on its owner alone. The other ranks keep their x. */
export const meanAtOwner = owned<MeanAtOwnerOptions, OneWayMessage>("meanAtOwner", "up", vectorToOwner);

/** x ← the owner's x, as its wire has it. If that is not finite, all ranks throw a StepRefusedError. */
export const fromOwner = owned<FromOwnerOptions, OneWayMessage>("fromOwner", "down", vectorFromOwner);

function computedVector(group: Group, x: Floats, given: ComputedMeanOptions, types: Types): OwnedVector {
  const { owner, compute, into = x } = given;
  const { up, down } = types;
  checkOwner("computedMean", owner, group);
  const sizes = sizeOf({ kind: "computedMean", owner, n: x.length, result: into.length }, types);
  return {
    ...sizes,
    write: (wire) => up.write("computedMean", wire, x),
    average: up.average,
    compute(mean, result) {
      using loan = sizes.computing > 0 ? scratchOf(group).loan(sizes.computing) : undefined;
      const floats = loan?.floats ?? floatsAt(result);
      try {
        compute(mean, floats);
      } catch (error) {
        // The other ranks wait for it.
        group.abort(`computedMean: rank ${owner} cannot compute its result: ${String(error)}`);
        throw new Error(`computedMean: compute failed on rank ${owner}, the owner: ${String(error)}`, { cause: error });
      }
      if (loan) down.write("computedMean", result, floats);
      else checkFinite("computedMean", floats);
    },
    handOut: (result) => down.read(into, result),
  };
}

function vectorToOwner(group: Group, x: Floats, { owner, arrived }: MeanAtOwnerOptions, types: Types): OwnedVector {
  const { up } = types;
  checkOwner("meanAtOwner", owner, group);
  return {
    ...sizeOf({ kind: "meanAtOwner", owner, n: x.length }, types),
    write: (wire) => up.write("meanAtOwner", wire, x),
    average: up.average,
    compute(mean) {
      copy(x, mean);
      arrived?.();
    },
    handOut() {},
  };
}

function vectorFromOwner(group: Group, x: Floats, { owner }: FromOwnerOptions, types: Types): OwnedVector {
  const { down } = types;
  checkOwner("fromOwner", owner, group);
  return {
    ...sizeOf({ kind: "fromOwner", owner, n: x.length }, types),
    write() {},
    average() {},
    compute: (_, result) => down.write("fromOwner", result, x),
    handOut: (result) => down.read(x, result),
  };
}

function checkOwner(where: string, owner: number, { size }: Group): void {
  if (!Number.isInteger(owner) || owner < 0 || owner >= size)
    throw new RangeError(
      `${where}: owner is ${owner}; choose one of the ranks 0 to ${size - 1}, the same on every rank.`,
    );
}

/** The vectors of a round that are carried together: those that go to owners and back, or one way only. */
export function ownedVectors(
  round: readonly { readonly kind: string }[],
  ranks: number,
  schemes: ChosenSchemes,
): readonly { readonly vectors: readonly OwnedSizes[]; readonly only: OneWay | undefined }[] {
  return [computedMean, meanAtOwner, fromOwner]
    .map(({ name }, i) => ({
      vectors: sizesOf(round.filter(({ kind }) => kind === name) as Sent[], ranks, schemes),
      only: ([undefined, "up", "down"] as const)[i],
    }))
    .filter(({ vectors }) => vectors.length > 0);
}

type Sent = ComputedMeanMessage | OneWayMessage;

function sizesOf(messages: readonly Sent[], ranks: number, schemes: ChosenSchemes): OwnedSizes[] {
  const types = typesOf(schemes, ranks);
  return messages.map((message) => sizeOf(message, types));
}

function sizeOf(message: Sent, { up, down }: Types): OwnedSizes {
  const { owner, n } = message;
  if (message.kind === "fromOwner") return { owner, n: 0, up: 0, down: down.bytes(n), isCut: true, computing: 0 };
  const toOwner = { owner, n, up: up.bytes(n), isCut: up.type === "f32" };
  if (message.kind !== "computedMean") return { ...toOwner, down: 0, computing: 0 };
  const { result: k = n } = message;
  return { ...toOwner, down: down.bytes(k), computing: down.type === "f32" ? 0 : 4 * k };
}

/** Carries all vectors of a round: both ways, or only up to their owners, or only down from them. */
function carryOwned(vectors: readonly OwnedVector[], context: ExchangeContext, only?: OneWay): Promise<void> {
  if (takesSlices(vectors, context.size, only)) return bySlices(vectors, context, only);
  const schemes = vectors.map((vector) => ownerScheme(vector, context, only));
  return byOwners(schemes, context);
}

function ownerScheme(
  vector: OwnedVector,
  { rank, size, scratch }: ExchangeContext,
  only: OneWay | undefined,
): OwnerScheme {
  const { owner, n, up, down } = vector;
  return {
    up: ownedBy(owner, up, size),
    down: ownedBy(owner, down, size),
    only,
    encode: (outgoing) => vector.write(outgoing[owner]!),
    reduce(incoming, result) {
      if (rank !== owner) return;
      if (only === "down") return vector.compute(noFloats, result);
      using loan = size > 1 ? scratch.loan(4 * n) : undefined;
      const mean = loan?.floats ?? floatsAt(incoming[owner]!); // of one rank, its own wire
      if (loan) vector.average(mean, incoming);
      vector.compute(mean, result);
    },
    handOut: (results) => vector.handOut(results[owner]!),
  };
}

const leastSaved = 1 << 15; // bytes for which one more message is worth it: 2.6 ms at 100 Mbit/s, 26 µs at 10 Gbit/s

export function takesSlices(vectors: readonly OwnedSizes[], ranks: number, only?: OneWay): boolean {
  const { owners, slices } = busiestBytes(vectors, ranks);
  return vectors.every(({ isCut }) => isCut) && owners - slices > (only ? 1 : 2) * leastSaved;
}

/**
 * Bytes on the wire one after the other, by owners and by slices: up, and then down. Each is the number of the rank
 * that sends or receives most, whichever is more, because the two directions of a link share nothing.
 */
export function busiestBytes(vectors: readonly OwnedSizes[], ranks: number): { owners: number; slices: number } {
  const inDirection = (direction: OneWay) => {
    const owned = new Array<number>(ranks).fill(0);
    for (const { owner, [direction]: bytes } of vectors) owned[owner]! += bytes;
    const all = owned.reduce((a, b) => a + b, 0);
    const most = Math.max(...owned);
    return {
      owners: Math.max(all - Math.min(...owned), (ranks - 1) * most),
      slices: ((ranks - 1) / ranks) * all + most,
    };
  };
  const [up, down] = [inDirection("up"), inDirection("down")];
  return { owners: up.owners + down.owners, slices: up.slices + down.slices };
}

/** The costs of vectors that are carried together: of each, or of all. */
function ownedCosts(vectors: readonly OwnedSizes[], ranks: number, rank: number, only?: OneWay): readonly Cost[] {
  if (takesSlices(vectors, ranks, only)) return [bySlicesCost(vectors, ranks, rank, only)];
  return vectors.map(({ owner, n, up, down, computing }) => {
    const reducing = rank === owner && ranks > 1 ? 4 * n + computing : 0;
    const ways = [ownedBy(owner, up, ranks), ownedBy(owner, down, ranks)] as const;
    return byOwnersCost(...ways, rank, { encoding: 0, reducing }, { only });
  });
}

const noFloats = new Float32Array(0);

const ownedBy = (owner: number, bytes: number, ranks: number): number[] =>
  Array.from({ length: ranks }, (_, r) => (r === owner ? bytes : 0));
