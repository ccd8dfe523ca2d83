/**
 * A function of the mean of a vector over the ranks, computed once, by the vector's owner, who sends the result to all.
 * The ranks share the work of several vectors, and have the same bits even where the function's last bits depend on the
 * processor, as QR and matrix products do.
 *
 *   x̄ ← (1/P) Σ_r x_r        in rank order, added in fp64 and rounded once
 *   into ← f(x̄)              the owner; the other ranks take its bytes
 *
 * Its two halves are messages of their own where something else happens between them:
 *
 *   mean at the owner        x ← x̄ on the owner alone
 *   from the owner           x ← the owner's x
 *
 * The vectors of a round are carried together, in one of two ways that give the same bits:
 *
 *   by owners   every rank sends its vectors to their owners, who send the results to all ranks (by-owners.ts). For n
 *               elements up and k down, the owner sends 4 k bytes to each other rank, and the others 4 n bytes to the
 *               owner. With owners of equal shares this is (P − 1)/P · 4 (n + k) bytes a rank, as an all-reduce sends.
 *               Messages: 2 (P − 1). Memory: 4 n bytes (4 (P + 1) n at the owner, if P > 1), and 4 k bytes.
 *   by slices   every rank averages a slice of all vectors for the owners (by-slices.ts): about twice the bytes of
 *               equal shares, whatever the shares, and 4 (P − 1) messages. Taken where the busiest rank saves 32 KiB
 *               each way, as with fewer vectors than ranks.
 */
import type { Floats } from "@terse/codecs";
import { copy, type Group } from "@terse/collectives";
import { byOwners, byOwnersCost, type OneWay, type OwnerScheme } from "../by-owners/by-owners.ts";
import { bySlices, bySlicesCost, type OwnedSizes, type OwnedVector } from "../by-owners/by-slices.ts";
import { averageFloats, checkFinite, floatsAt, writeFloats } from "../by-owners/f32-wires.ts";
import type { Cost } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
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

const owned = <O, M>(
  name: string,
  only: OneWay | undefined,
  ask: Kind<Floats, O, OwnedVector, void, M>["ask"],
  sizesOf: (message: M) => OwnedSizes,
): Kind<Floats, O, OwnedVector, void, M> => ({
  name,
  memory: "stays",
  ask,
  carry: (vectors, context) => carryOwned(vectors, context, only),
  result: nothing,
  cost: (messages, ranks, rank) => (messages.length > 0 ? ownedCosts(messages.map(sizesOf), ranks, rank, only) : []),
});

/** into ← f(mean over ranks of x), computed once, by its owner, who sends it to all; into is x unless given. */
export const computedMean = owned<ComputedMeanOptions, ComputedMeanMessage>(
  "computedMean",
  undefined,
  (x, options, { group }) => computedVector(group, x, options),
  (message) => sizes.computedMean(message),
);

/** x ← mean over ranks of x, on its owner alone. The other ranks keep their x. */
export const meanAtOwner = owned<MeanAtOwnerOptions, OneWayMessage>(
  "meanAtOwner",
  "up",
  (x, options, { group }) => vectorToOwner(group, x, options),
  (message) => sizes.meanAtOwner(message),
);

/** x ← the owner's x. If that is not finite, all ranks throw a StepRefusedError. */
export const fromOwner = owned<FromOwnerOptions, OneWayMessage>(
  "fromOwner",
  "down",
  (x, options, { group }) => vectorFromOwner(group, x, options),
  (message) => sizes.fromOwner(message),
);

function computedVector(group: Group, x: Floats, given: ComputedMeanOptions): OwnedVector {
  const { owner, compute, into = x } = given;
  checkOwner("computedMean", owner, group);
  return {
    owner,
    n: x.length,
    k: into.length,
    write: (wire) => writeFloats("computedMean", wire, x),
    compute(mean, result) {
      try {
        compute(mean, floatsAt(result));
      } catch (error) {
        // The other ranks wait for it.
        group.abort(`computedMean: rank ${owner} cannot compute its result: ${String(error)}`);
        throw new Error(`computedMean: compute failed on rank ${owner}, the owner: ${String(error)}`, { cause: error });
      }
      checkFinite("computedMean", floatsAt(result));
    },
    handOut: (result) => copy(into, floatsAt(result)),
  };
}

function vectorToOwner(group: Group, x: Floats, { owner, arrived }: MeanAtOwnerOptions): OwnedVector {
  checkOwner("meanAtOwner", owner, group);
  return {
    owner,
    n: x.length,
    k: 0,
    write: (wire) => writeFloats("meanAtOwner", wire, x),
    compute(mean) {
      copy(x, mean);
      arrived?.();
    },
    handOut() {},
  };
}

function vectorFromOwner(group: Group, x: Floats, { owner }: FromOwnerOptions): OwnedVector {
  checkOwner("fromOwner", owner, group);
  return {
    owner,
    n: 0,
    k: x.length,
    write() {},
    compute: (_, result) => writeFloats("fromOwner", result, x),
    handOut: (result) => copy(x, floatsAt(result)),
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
): readonly { readonly vectors: readonly OwnedSizes[]; readonly only: OneWay | undefined }[] {
  const of = <M extends { kind: string }>(kind: M["kind"]) =>
    round.filter((message) => message.kind === kind) as unknown as M[];
  return [
    { vectors: of<ComputedMeanMessage>("computedMean").map(sizes.computedMean), only: undefined },
    { vectors: of<OneWayMessage>("meanAtOwner").map(sizes.meanAtOwner), only: "up" as const },
    { vectors: of<OneWayMessage>("fromOwner").map(sizes.fromOwner), only: "down" as const },
  ].filter(({ vectors }) => vectors.length > 0);
}

const sizes = {
  computedMean: ({ owner, n, result = n }: ComputedMeanMessage): OwnedSizes => ({ owner, n, k: result }),
  meanAtOwner: ({ owner, n }: OneWayMessage): OwnedSizes => ({ owner, n, k: 0 }),
  fromOwner: ({ owner, n }: OneWayMessage): OwnedSizes => ({ owner, n: 0, k: n }),
};

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
  const { owner, n, k } = vector;
  return {
    up: ownedBy(owner, 4 * n, size),
    down: ownedBy(owner, 4 * k, size),
    only,
    encode: (outgoing) => vector.write(outgoing[owner]!),
    reduce(incoming, result) {
      if (rank !== owner) return;
      if (only === "down") return vector.compute(noFloats, result);
      using loan = size > 1 ? scratch.loan(4 * n) : undefined;
      const mean = loan?.floats ?? floatsAt(incoming[owner]!); // of one rank, its own wire
      if (loan) averageFloats(mean, incoming);
      vector.compute(mean, result);
    },
    handOut: (results) => vector.handOut(results[owner]!),
  };
}

const leastSaved = 1 << 15; // bytes for which one more message is worth it: 2.6 ms at 100 Mbit/s, 26 µs at 10 Gbit/s

export function takesSlices(vectors: readonly OwnedSizes[], ranks: number, only?: OneWay): boolean {
  const { owners, slices } = busiestBytes(vectors, ranks);
  return owners - slices > (only ? 1 : 2) * leastSaved;
}

/**
 * Bytes on the wire one after the other, by owners and by slices: up, and then down. Each is the number of the rank
 * that sends or receives most, whichever is more, because the two directions of a link share nothing.
 */
export function busiestBytes(vectors: readonly OwnedSizes[], ranks: number): { owners: number; slices: number } {
  const way = (key: "n" | "k") => {
    const owned = new Array<number>(ranks).fill(0);
    for (const { owner, [key]: length } of vectors) owned[owner]! += 4 * length;
    const all = owned.reduce((a, b) => a + b, 0);
    const most = Math.max(...owned);
    return {
      owners: Math.max(all - Math.min(...owned), (ranks - 1) * most),
      slices: ((ranks - 1) / ranks) * all + most,
    };
  };
  const [up, down] = [way("n"), way("k")];
  return { owners: up.owners + down.owners, slices: up.slices + down.slices };
}

/** The costs of vectors that are carried together: of each, or of all. */
function ownedCosts(vectors: readonly OwnedSizes[], ranks: number, rank: number, only?: OneWay): readonly Cost[] {
  if (takesSlices(vectors, ranks, only)) return [bySlicesCost(vectors, ranks, rank, only)];
  return vectors.map(({ owner, n, k }) => {
    const reducing = rank === owner && ranks > 1 ? 4 * n : 0;
    const ways = [ownedBy(owner, 4 * n, ranks), ownedBy(owner, 4 * k, ranks)] as const;
    return byOwnersCost(...ways, rank, { encoding: 0, reducing }, { only });
  });
}

const noFloats = new Float32Array(0);

const ownedBy = (owner: number, bytes: number, ranks: number): number[] =>
  Array.from({ length: ranks }, (_, r) => (r === owner ? bytes : 0));
