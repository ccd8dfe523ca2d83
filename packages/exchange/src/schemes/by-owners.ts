/**
 * What schemes have in common in which every chunk of a vector has an owner.
 *
 *   1. all-to-all    every rank sends each owner what it has to say about that owner's chunk
 *   2. reduce        the owner makes one wire of what all ranks said
 *   3. all-gather    and sends it to everybody: as an all-to-all, whose headers say so when the owner could not
 *
 * Sent by a rank for up[r] bytes to owner r and down[r] bytes from it: 2 (P − 1) messages, Σ up − up[rank] + (P − 1) down[rank] bytes.
 * Held: Σ up + (P − 1) up[rank] + Σ down, and what writing or reducing takes.
 */
import { BadWireError, NotFiniteError } from "@terse/codecs";
import { allGatherBytes, allToAllBytes, type Group } from "@terse/collectives";
import { type Cost, costOf } from "../cost.ts";
import { checkNotes, noteOf } from "../refusal.ts";
import { type Loan, type Scratch, scratchOf } from "../scratch.ts";

/** One vector's part in a joint message. What it throws, all ranks must be able to hear of: a codec's errors, while it writes. */
export interface Delivery {
  /** Bytes for each owner, the same from every rank; and of the wire that each owner makes. */
  readonly up: readonly number[];
  readonly down: readonly number[];
  /** What goes to each owner, this rank included. */
  write(outgoing: readonly Uint8Array[]): void;
  /** As the owner: what each rank sent, by rank, becomes one wire. */
  reduce(incoming: readonly Uint8Array[], result: Uint8Array): void;
  /** The owners' wires, by rank: the same on every rank. */
  finish(results: readonly Uint8Array[]): void;
}

/**
 * Carries vectors together. `note`: this rank's refusal, 0 if it has none. `gather`: the group that results go over. `sent` is called
 * when nothing more will be asked of the first group.
 */
export async function byOwners(
  group: Group,
  deliveries: readonly Delivery[],
  note = 0,
  gather: Group = group,
  sent: () => void = () => {},
): Promise<void> {
  const { rank, size } = group;
  const scratch = scratchOf(group);
  using results = new Wires(
    scratch,
    size,
    deliveries.map(({ down }) => down),
    "later",
  );
  {
    using outgoing = new Wires(
      scratch,
      size,
      deliveries.map(({ up }) => up),
    );
    const unwritten = noteOfFailure(() => {
      for (const [d, delivery] of deliveries.entries()) delivery.write(outgoing.of(d));
    });
    note ||= unwritten;
    using incoming = new Wires(
      scratch,
      size,
      deliveries.map(({ up }) => Array.from({ length: size }, (_, r) => (r === rank ? 0 : up[rank]!))),
    );
    const arrived = size === 1 ? [note] : group.allToAll(outgoing.except(rank), incoming.byRank, { note });
    if (gather !== group) sent();
    checkNotes(await arrived);

    results.take();
    note = noteOfFailure(() => {
      for (const [d, delivery] of deliveries.entries()) {
        const wires = incoming.of(d).map((wire, r) => (r === rank ? outgoing.of(d)[rank]! : wire));
        reduceOrAbort(group, () => delivery.reduce(wires, results.of(d)[rank]!));
      }
    });
  }
  const own = results.byRank[rank]!;
  const toAll = results.byRank.map((_, r) => (r === rank ? nothing : own));
  const notes = size === 1 ? [note] : gather.allToAll(toAll, results.except(rank), { note });
  sent();
  checkNotes(await notes);
  for (const [d, delivery] of deliveries.entries()) delivery.finish(results.of(d));
}

/** The cost of one vector; `writing` and `reducing`: bytes that these take beside the wires. */
export function byOwnersCost(
  up: readonly number[],
  down: readonly number[],
  rank: number,
  { writing, reducing }: { writing: number; reducing: number },
): Cost {
  const ranks = up.length;
  const sum = (sizes: readonly number[]) => sizes.reduce((a, b) => a + b, 0);
  const wires = sum(up) + (ranks - 1) * up[rank]! + sum(down);
  return costOf([allToAllBytes(up, rank), allGatherBytes(down, rank)], Math.max(sum(up) + writing, wires + reducing));
}

const nothing = new Uint8Array(0);

/** The note of what a codec refuses to write, which every rank is then told; 0 where it went well. */
export function noteOfFailure(write: () => void): number {
  try {
    write();
    return 0;
  } catch (error) {
    if (error instanceof NotFiniteError) return noteOf("the gradient is not finite");
    if (error instanceof RangeError && !(error instanceof BadWireError))
      return noteOf("a value is beyond what its codec can write");
    throw error;
  }
}

/** What arrived cannot be read, which no other rank knows of: all learn it now instead of waiting for ever. */
export function reduceOrAbort(group: Group, reduce: () => void): void {
  try {
    reduce();
  } catch (error) {
    if (error instanceof BadWireError) group.abort(error.message);
    throw error;
  }
}

/** Wires of several deliveries, laid behind each other for each rank. */
export class Wires implements Disposable {
  readonly byRank: Uint8Array[] = []; // of all deliveries together
  readonly #scratch: Scratch;
  readonly #ranks: number;
  readonly #sizes: readonly (readonly number[])[]; // [delivery][rank]
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

  /** The wires of one delivery, by rank. */
  of(delivery: number): Uint8Array[] {
    return this.byRank.map((all, r) => {
      const before = this.#sizes.slice(0, delivery).reduce((sum, of) => sum + of[r]!, 0);
      return all.subarray(before, before + this.#sizes[delivery]![r]!);
    });
  }

  /** For a message: what a rank has for itself does not travel. */
  except(rank: number): Uint8Array[] {
    return this.byRank.map((all, r) => (r === rank ? nothing : all));
  }

  [Symbol.dispose](): void {
    this.#loan?.[Symbol.dispose]();
  }
}
