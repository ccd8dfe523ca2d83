/**
 * Vectors of which every rank owns a chunk, carried together as one message each way.
 *
 *   lay out      how many bytes go to each owner (up), and how many come from each owner (down)
 *   encode       every rank writes a wire for each owner
 *   carry up     all-to-all: every owner receives all ranks' wires of its chunk
 *   reduce       the owner makes one wire of them
 *   carry down   all-gather, as an all-to-all whose headers say where an owner could not
 *   hand out     every rank reads the owners' wires: the same bytes everywhere
 *
 * Sent by a rank for up[r] bytes to owner r and down[r] bytes from it: 2 (P − 1) messages, Σ up − up[rank] + (P − 1) down[rank] bytes.
 * Held: Σ up + (P − 1) up[rank] + Σ down, and what encoding or reducing takes.
 */
import { BadWireError, NotFiniteError } from "@terse/codecs";
import { allGatherBytes, allToAllBytes, type Group } from "@terse/collectives";
import { type Cost, costOf } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { checkNotes, noteOf, type RefusalReason } from "../refusal.ts";
import type { Loan, Scratch } from "../scratch.ts";

/** The phases of one vector. A codec's error while it encodes or reduces is a refusal, which every rank is told. */
export interface OwnerScheme {
  /** Bytes to each owner, the same from every rank; and bytes of the wire that each owner makes. */
  readonly up: readonly number[];
  readonly down: readonly number[];
  /** Writes a wire for each owner, this rank included. */
  encode(outgoing: readonly Uint8Array[]): void;
  /** As the owner: makes one wire of what each rank sent, by rank. */
  reduce(incoming: readonly Uint8Array[], result: Uint8Array): void;
  /** Reads the owners' wires, by rank. */
  handOut(results: readonly Uint8Array[]): void;
}

/** Carries the vectors of several schemes together. */
export async function byOwners(schemes: readonly OwnerScheme[], context: ExchangeContext): Promise<void> {
  const { up, down, rank, size, scratch } = context;
  using results = new Wires(
    scratch,
    size,
    schemes.map((scheme) => scheme.down),
    "later",
  );
  let note: number;
  {
    using outgoing = new Wires(
      scratch,
      size,
      schemes.map((scheme) => scheme.up),
    );
    const failure = failureOf(() => {
      for (const [s, scheme] of schemes.entries()) scheme.encode(outgoing.of(s));
    });
    note = context.note || noteOf(failure);
    using incoming = new Wires(
      scratch,
      size,
      schemes.map((scheme) => Array.from({ length: size }, (_, r) => (r === rank ? 0 : scheme.up[rank]!))),
    );
    const arrived = size === 1 ? [note] : up.allToAll(outgoing.except(rank), incoming.byRank, { note });
    context.upCalled();
    checkNotes(await arrived);

    results.take();
    note = noteOf(
      failureOf(() => {
        for (const [s, scheme] of schemes.entries()) {
          const wires = incoming.of(s).map((wire, r) => (r === rank ? outgoing.of(s)[rank]! : wire));
          readOrAbort(up.group, () => scheme.reduce(wires, results.of(s)[rank]!));
        }
      }),
    );
  }
  const own = results.byRank[rank]!;
  const toAll = results.byRank.map((_, r) => (r === rank ? nothing : own));
  const notes = size === 1 ? [note] : down.allToAll(toAll, results.except(rank), { note });
  context.allCalled();
  checkNotes(await notes);
  for (const [s, scheme] of schemes.entries()) scheme.handOut(results.of(s));
}

/** The cost of one vector; `encoding` and `reducing`: bytes that these take beside the wires. */
export function byOwnersCost(
  up: readonly number[],
  down: readonly number[],
  rank: number,
  { encoding, reducing }: { encoding: number; reducing: number },
): Cost {
  const ranks = up.length;
  const sum = (sizes: readonly number[]) => sizes.reduce((a, b) => a + b, 0);
  const wires = sum(up) + (ranks - 1) * up[rank]! + sum(down);
  return costOf([allToAllBytes(up, rank), allGatherBytes(down, rank)], Math.max(sum(up) + encoding, wires + reducing));
}

const nothing = new Uint8Array(0);

/** Why a codec refuses to write a vector; undefined where it has written it. */
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

/** A wire that cannot be read is this rank's knowledge alone: it ends the group, so that no other rank waits for ever. */
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

  /** For a message: a rank does not send to itself. */
  except(rank: number): Uint8Array[] {
    return this.byRank.map((all, r) => (r === rank ? nothing : all));
  }

  [Symbol.dispose](): void {
    this.#loan?.[Symbol.dispose]();
  }
}
