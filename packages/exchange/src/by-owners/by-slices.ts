/**
 * Brings the means of vectors to their owners, and brings what the owners compute from them to all ranks, in slices of
 * equal length. For fewer vectors than ranks: sent directly, P − 1 copies of each vector would reach its owner; here
 * one does.
 *
 *   reduce       an all-to-all: slice r of all vectors, as one, from every rank to rank r, which averages it
 *   collect      an all-to-all: the averaged slices to the owners of their elements
 *   compute      the owners
 *   scatter      an all-to-all: the results in slices, slice r to rank r, whose headers carry the refusal of an owner
 *   gather       an all-gather of these slices, sent as an all-to-all
 *
 * Sent and received by a rank, in bytes at most. It sends N bytes up, which are f32, and K down, in any type; of these
 * it owns N_o and K_o. Its slices are about 1/P of all. Messages: 4 (P − 1).
 *
 *   sends      (P − 1)/P · N + N/P + K_o + (P − 1)/P · K
 *   receives   (P − 1)/P · N + N_o + K/P + (P − 1)/P · K
 *   holds      N, and the larger of (P − 1)/P · N from other ranks and K
 */
import { allToAllBytes } from "@terse/collectives";
import type { QueuedGroup } from "../collective-queue.ts";
import { type Cost, costOf } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { runStages, type Stage } from "../run-stages.ts";
import { watched } from "../watched.ts";
import type { OneWay } from "./by-owners.ts";
import { averageFloats, floatsAt } from "./f32-wires.ts";
import { noBytes } from "./wires.ts";

/** A vector with an owner: its elements, the bytes to the owner, and the bytes of what the owner computes from it. */
export interface OwnedSizes {
  readonly owner: number;
  readonly n: number;
  readonly up: number;
  readonly down: number;
  /** Slices of it can be averaged: it goes up in f32, or not at all. */
  readonly isCut: boolean;
  /** Bytes that the owner holds while it computes, besides the mean and the wires. */
  readonly computing: number;
}

export interface OwnedVector extends OwnedSizes {
  /** Writes this rank's elements. */
  write(wire: Uint8Array): void;
  /** As the owner: writes the wire of the result. It may change the mean. */
  compute(mean: Float32Array, result: Uint8Array): void;
  /** As the owner: the mean of all ranks' wires. */
  average(mean: Float32Array, wires: readonly Uint8Array[]): void;
  /** Reads the result, the same bytes on every rank. */
  handOut(result: Uint8Array): void;
}

/**
 * Runs all phases for several vectors together; with `only` up, those until the owners have computed; with `only` down,
 * the others.
 */
export async function bySlices(given: readonly OwnedVector[], context: ExchangeContext, only?: OneWay): Promise<void> {
  const { rank, size, scratch, watch } = context;
  const vectors = given.toSorted((a, b) => a.owner - b.owner); // then what a rank owns is in one piece
  const [means, results] = [layOut(vectors, "up", size), layOut(vectors, "down", size)];
  const ranks = Array.from({ length: size }, (_, r) => r);
  const fromOthers = (part: (r: number) => Uint8Array) => ranks.map((r) => (r === rank ? noBytes : part(r)));

  using whole = scratch.loan(means.total);
  using others = scratch.loan(Math.max((size - 1) * means.sliceLength(rank), results.total));
  const own = means.slice(whole.bytes, rank);
  const copies = fromOthers((r) => {
    const place = r < rank ? r : r - 1;
    return others.bytes.subarray(place * own.length, (place + 1) * own.length);
  });
  const answers = others.bytes.subarray(0, results.total); // when the copies have been averaged
  const exchange = (outgoing: (r: number) => Uint8Array, incoming: (r: number) => Uint8Array) => ({
    call: (group: QueuedGroup, note: number) => group.allToAll(fromOthers(outgoing), fromOthers(incoming), { note }),
  });
  const up: Stage[] = [
    {
      on: "up",
      encode() {
        for (const [i, vector] of vectors.entries()) vector.write(means.vector(whole.bytes, i));
      },
      ...exchange(
        (r) => means.slice(whole.bytes, r),
        (r) => copies[r]!,
      ),
    },
    {
      on: "up",
      decode: () => averageFloats(floatsAt(own), copies.with(rank, own)),
      // The owner's elements arrive where its own were, which have been sent.
      ...exchange(
        (owner) => means.piece(whole.bytes, owner, rank),
        (r) => means.piece(whole.bytes, rank, r),
      ),
    },
  ];
  const compute = () => {
    for (const [i, vector] of vectors.entries())
      if (vector.owner === rank) vector.compute(floatsAt(means.vector(whole.bytes, i)), results.vector(answers, i));
  };
  const down: Stage[] = [
    {
      on: "down",
      decode: compute,
      ...exchange(
        (r) => results.piece(answers, rank, r),
        (owner) => results.piece(answers, owner, rank),
      ),
    },
    {
      on: "down",
      ...exchange(
        () => results.slice(answers, rank),
        (r) => results.slice(answers, r),
      ),
    },
  ];
  await runStages([...(only === "down" ? [] : up), ...(only === "up" ? [] : down)], context);
  watched(watch, "decode", () => {
    if (only === "up") return compute(); // no message would carry a refusal
    for (const [i, vector] of vectors.entries()) vector.handOut(results.vector(answers, i));
  });
}

/** The cost of all vectors that are carried together. */
export function bySlicesCost(given: readonly OwnedSizes[], ranks: number, rank: number, only?: OneWay): Cost {
  const vectors = given.toSorted((a, b) => a.owner - b.owner);
  const [means, results] = [layOut(vectors, "up", ranks), layOut(vectors, "down", ranks)];
  const toEach = (length: (r: number) => number) => Array.from({ length: ranks }, (_, r) => length(r));
  const ways = {
    up: [toEach((r) => means.sliceLength(r)), toEach((owner) => means.pieceLength(owner, rank))],
    down: [toEach((r) => results.pieceLength(rank, r)), toEach(() => results.sliceLength(rank))],
  };
  const taken = only === undefined ? [...ways.up, ...ways.down] : ways[only];
  const volumes = taken.map((sizes) => allToAllBytes(sizes, rank));
  const others = (ranks - 1) * means.sliceLength(rank);
  const computing = Math.max(0, ...vectors.map((vector) => (vector.owner === rank ? vector.computing : 0)));
  return costOf(volumes, means.total + Math.max(others, results.total) + computing);
}

/**
 * Wires one after the other, in the order of their owners. The whole is cut once more, into a slice for each rank, at
 * multiples of four bytes, so that no float is cut.
 */
function layOut(vectors: readonly OwnedSizes[], key: OneWay, ranks: number): Layout {
  const begins = [0];
  const owned = new Array<number>(ranks + 1).fill(0);
  for (const { owner, [key]: length } of vectors) {
    begins.push(begins.at(-1)! + length);
    for (let r = owner + 1; r <= ranks; r++) owned[r] = begins.at(-1)!;
  }
  return new Layout(begins, owned, ranks);
}

class Layout {
  readonly total: number; // bytes
  readonly #begins: readonly number[]; // of each vector, and the end
  readonly #owned: readonly number[]; // what owner r has begins at [r]
  readonly #slices: readonly number[]; // slice r begins at [r]

  constructor(begins: readonly number[], owned: readonly number[], ranks: number) {
    this.total = begins.at(-1)!;
    this.#begins = begins;
    this.#owned = owned;
    this.#slices = Array.from({ length: ranks + 1 }, (_, r) =>
      r === ranks ? this.total : 4 * Math.floor((r * (this.total / 4)) / ranks),
    );
  }

  vector(memory: Uint8Array, i: number): Uint8Array {
    return memory.subarray(this.#begins[i]!, this.#begins[i + 1]!);
  }

  slice(memory: Uint8Array, r: number): Uint8Array {
    return memory.subarray(this.#slices[r]!, this.#slices[r + 1]!);
  }

  sliceLength(r: number): number {
    return this.#slices[r + 1]! - this.#slices[r]!;
  }

  /** What an owner has of slice r. */
  piece(memory: Uint8Array, owner: number, r: number): Uint8Array {
    const begin = this.#pieceBegin(owner, r);
    return memory.subarray(begin, begin + this.pieceLength(owner, r));
  }

  pieceLength(owner: number, r: number): number {
    return Math.max(0, Math.min(this.#owned[owner + 1]!, this.#slices[r + 1]!) - this.#pieceBegin(owner, r));
  }

  #pieceBegin(owner: number, r: number): number {
    return Math.max(this.#owned[owner]!, this.#slices[r]!);
  }
}
