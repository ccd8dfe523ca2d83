/**
 * Reduces vectors by owners: each rank owns a chunk of every vector. Several vectors are carried together, as one message each way.
 *
 *   lay out      the number of bytes to each owner (up) and from each owner (down)
 *   encode       every rank writes a wire for each owner
 *   carry up     all-to-all: every owner receives all ranks' wires of its chunk
 *   reduce       the owner reduces them to one wire
 *   carry down   an all-gather, sent as an all-to-all, whose headers carry the refusal of an owner that cannot write its result
 *   hand out     every rank reads the owners' wires, which are the same bytes on every rank
 *
 * Sent by a rank, with up[r] bytes to owner r and down[r] bytes from it: 2 (P − 1) messages, Σ up − up[rank] + (P − 1) down[rank] bytes.
 * Held: Σ up + (P − 1) up[rank] + Σ down, and the memory of encoding or reducing.
 */
import { BadWireError, NotFiniteError } from "@terse/codecs";
import { allToAllBytes, type Group } from "@terse/collectives";
import { type Cost, costOf } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { checkNotes, noteOf, type RefusalReason } from "../refusal.ts";
import type { Loan, Scratch } from "../scratch.ts";
import { watched } from "../watch.ts";

/** The one way that wires go, where no result comes down, or nothing is reduced. */
export type OneWay = "up" | "down";

/** The phases of one vector. If a codec fails in `encode` or `reduce`, this rank refuses the step, and every rank throws a StepRefusedError. */
export interface OwnerScheme {
  /** Bytes to each owner, the same from every rank. */
  readonly up: readonly number[];
  /** Bytes of each owner's result. */
  readonly down: readonly number[];
  /**
   * The ranks that this rank exchanges vectors with, itself among them; all ranks unless given. `up` and `down` are 0 for the others. All
   * schemes that are carried together have the same members.
   */
  readonly members?: readonly number[] | undefined;
  /** With `down`, `reduce` writes this rank's wire. */
  readonly only?: OneWay | undefined;
  /** Writes a wire for each owner, this rank included. */
  encode(outgoing: readonly Uint8Array[]): void;
  /** As the owner of a chunk: reduces the wires of all ranks, by rank, to one. */
  reduce(incoming: readonly Uint8Array[], result: Uint8Array): void;
  /** Reads the owners' wires, by rank. */
  handOut(results: readonly Uint8Array[]): void;
}

/** Runs all phases for several vectors together. */
export async function byOwners(schemes: readonly OwnerScheme[], context: ExchangeContext): Promise<void> {
  const { up, down, rank, size, scratch, watch } = context;
  const [{ members, only }] = schemes as readonly [OwnerScheme];
  const isMember = (r: number) => members?.includes(r) ?? true;
  using results = new Wires(
    scratch,
    size,
    schemes.map((scheme) => scheme.down),
    "later",
  );
  let note = context.note;
  if (only === "down") {
    context.upCalled();
    results.take();
    const write = () => {
      for (const [s, scheme] of schemes.entries()) scheme.reduce([], results.of(s)[rank]!);
    };
    note ||= noteOf(failureOf(() => watched(watch, "encode", write)));
  } else {
    using outgoing = new Wires(
      scratch,
      size,
      schemes.map((scheme) => scheme.up),
    );
    const encode = () => {
      for (const [s, scheme] of schemes.entries()) scheme.encode(outgoing.of(s));
    };
    const failure = failureOf(() => watched(watch, "encode", encode));
    note ||= noteOf(failure);
    using incoming = new Wires(
      scratch,
      size,
      schemes.map((scheme) =>
        Array.from({ length: size }, (_, r) => (r === rank || !isMember(r) ? 0 : scheme.up[rank]!)),
      ),
    );
    const arrived = size === 1 ? [note] : up.allToAll(outgoing.except(rank), incoming.byRank, { note });
    if (only === "up") context.allCalled();
    else context.upCalled();
    checkNotes(await arrived);

    results.take();
    const reduce = () => {
      for (const [s, scheme] of schemes.entries()) {
        const wires = incoming.of(s).map((wire, r) => (r === rank ? outgoing.of(s)[rank]! : wire));
        readOrAbort(up.group, () => scheme.reduce(wires, results.of(s)[rank]!));
      }
    };
    if (only === "up") return watched(watch, "decode", reduce); // no message would carry a refusal
    note = noteOf(failureOf(() => watched(watch, "decode", reduce)));
  }
  const own = results.byRank[rank]!;
  const toAll = results.byRank.map((_, r) => (r === rank || !isMember(r) ? nothing : own));
  const notes = size === 1 ? [note] : down.allToAll(toAll, results.except(rank), { note });
  context.allCalled();
  checkNotes(await notes);
  watched(watch, "decode", () => {
    for (const [s, scheme] of schemes.entries()) scheme.handOut(results.of(s));
  });
}

/** The cost of one vector; `encoding` and `reducing` are the bytes that these phases hold besides the wires. */
export function byOwnersCost(
  up: readonly number[],
  down: readonly number[],
  rank: number,
  { encoding, reducing }: { encoding: number; reducing: number },
  { members, only }: Pick<OwnerScheme, "members" | "only"> = {},
): Cost {
  const others = (members ?? up).length - 1;
  const sum = (sizes: readonly number[]) => sizes.reduce((a, b) => a + b, 0);
  const wires = sum(up) + others * up[rank]! + sum(down);
  const toAll = up.map((_, r) => ((members?.includes(r) ?? true) ? down[rank]! : 0));
  const ways = [allToAllBytes(up, rank), allToAllBytes(toAll, rank)];
  const taken = only === undefined ? ways : only === "up" ? ways.slice(0, 1) : ways.slice(1);
  return costOf(taken, Math.max(sum(up) + encoding, wires + reducing));
}

const nothing = new Uint8Array(0);

/** The reason if a codec cannot write a vector; undefined if it has written it. */
export function failureOf(write: () => void): RefusalReason | undefined {
  try {
    write();
    return undefined;
  } catch (error) {
    if (error instanceof NotFiniteError) return "the gradient is not finite";
    if (error instanceof RangeError && !(error instanceof BadWireError))
      return "a value is beyond what its codec can write";
    throw error;
  }
}

/** Reads wires. Only this rank knows of a wire that cannot be read, so it aborts the group; otherwise the other ranks would wait for it. */
export function readOrAbort(group: Group, read: () => void): void {
  try {
    read();
  } catch (error) {
    if (error instanceof BadWireError) group.abort(error.message);
    throw error;
  }
}

/** The wires of several vectors, one after the other for each rank. */
export class Wires implements Disposable {
  readonly byRank: Uint8Array[] = []; // of all vectors together
  readonly #scratch: Scratch;
  readonly #ranks: number;
  readonly #sizes: readonly (readonly number[])[]; // [vector][rank]
  #loan: Loan | undefined;

  constructor(scratch: Scratch, ranks: number, sizes: readonly (readonly number[])[], when: "now" | "later" = "now") {
    this.#scratch = scratch;
    this.#ranks = ranks;
    this.#sizes = sizes;
    if (when === "now") this.take();
  }

  take(): void {
    const totals = Array.from({ length: this.#ranks }, (_, r) => this.#sizes.reduce((sum, of) => sum + of[r]!, 0));
    this.#loan = this.#scratch.loan(totals.reduce((a, b) => a + b, 0));
    let at = 0;
    for (const total of totals) {
      this.byRank.push(this.#loan.bytes.subarray(at, at + total));
      at += total;
    }
  }

  /** The wires of one vector, by rank. */
  of(vector: number): Uint8Array[] {
    return this.byRank.map((all, r) => {
      const before = this.#sizes.slice(0, vector).reduce((sum, of) => sum + of[r]!, 0);
      return all.subarray(before, before + this.#sizes[vector]![r]!);
    });
  }

  /** The parts of a message: all wires, and an empty part for this rank, which sends nothing to itself. */
  except(rank: number): Uint8Array[] {
    return this.byRank.map((all, r) => (r === rank ? nothing : all));
  }

  [Symbol.dispose](): void {
    this.#loan?.[Symbol.dispose]();
  }
}
