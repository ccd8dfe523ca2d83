/**
 * Reduces vectors by owners: each rank owns a chunk of every vector. Several vectors are carried together, as one
 * message each way.
 *
 *   lay out      the number of bytes to each owner (up) and from each owner (down)
 *   encode       every rank writes a wire for each owner
 *   carry up     all-to-all: every owner receives all ranks' wires of its chunk
 *   reduce       the owner reduces them to one wire
 *   carry down   an all-gather, sent as an all-to-all; its headers tell if an owner refuses to write its result
 *   hand out     every rank reads the owners' wires, which are the same bytes on every rank
 *
 * With up[r] bytes to owner r and down[r] bytes from it, a rank
 *
 *   sends   2 (P − 1) messages, Σ up − up[rank] + (P − 1) down[rank] bytes
 *   holds   Σ up + (P − 1) up[rank] + Σ down bytes, and the memory of encoding or reducing
 */
import { allToAllBytes } from "@terse/collectives";
import { type Cost, costOf } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { readOrAbort } from "../refusal.ts";
import { runStages, type Stage } from "../run-stages.ts";
import { watched } from "../watched.ts";
import { noBytes, Wires } from "./wires.ts";

/** The only direction that wires take: up where no result comes down, down where nothing is reduced. */
export type OneWay = "up" | "down";

/**
 * The phases of one vector. If a codec fails in `encode` or `reduce`, this rank refuses the step, and every rank throws
 * a StepRefusedError.
 */
export interface OwnerScheme {
  /** Bytes to each owner, the same from every rank. */
  readonly up: readonly number[];
  /** Bytes of each owner's result. */
  readonly down: readonly number[];
  /**
   * The ranks that this rank exchanges vectors with, itself among them; all ranks unless given. `up` and `down` are 0
   * for the others. All schemes that are carried together have the same members.
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
  using phases = new OwnerPhases(schemes, context);
  await runStages(phases.stages, context);
  phases.handOut();
}

/** The stages of several vectors that are carried together, and what follows them. */
export class OwnerPhases implements Disposable {
  readonly stages: readonly Stage[];
  readonly #schemes: readonly OwnerScheme[];
  readonly #context: ExchangeContext;
  readonly #outgoing: Wires;
  readonly #incoming: Wires;
  readonly #results: Wires;

  constructor(schemes: readonly OwnerScheme[], context: ExchangeContext) {
    const { rank, size, scratch } = context;
    const [{ members, only }] = schemes as readonly [OwnerScheme];
    const isMember = (r: number) => members?.includes(r) ?? true;
    const ofOthers = ({ up }: OwnerScheme) =>
      Array.from({ length: size }, (_, r) => (r === rank || !isMember(r) ? 0 : up[rank]!));
    this.#schemes = schemes;
    this.#context = context;
    this.#outgoing = new Wires(
      scratch,
      size,
      schemes.map(({ up }) => up),
    );
    this.#incoming = new Wires(scratch, size, schemes.map(ofOthers));
    this.#results = new Wires(
      scratch,
      size,
      schemes.map(({ down }) => down),
    );

    const up: Stage = {
      on: "up",
      encode: () => this.#encode(),
      call: (group, note) => {
        this.#incoming.take();
        return group.allToAll(this.#outgoing.except(rank), this.#incoming.byRank, { note });
      },
    };
    const down: Stage = {
      on: "down",
      [only === "down" ? "encode" : "decode"]: () => this.#reduce(),
      call: (group, note) => {
        const own = this.#results.byRank[rank]!;
        const toAll = this.#results.byRank.map((_, r) => (r === rank || !isMember(r) ? noBytes : own));
        return group.allToAll(toAll, this.#results.except(rank), { note });
      },
    };
    this.stages = [...(only === "down" ? [] : [up]), ...(only === "up" ? [] : [down])];
  }

  /** Follows the stages: every rank reads the results, or, where none come down, the owners reduce. */
  handOut(): void {
    watched(this.#context.watch, "decode", () => {
      if (this.#schemes[0]!.only === "up") return this.#reduce(); // no message would carry a refusal
      for (const [s, scheme] of this.#schemes.entries()) scheme.handOut(this.#results.of(s));
    });
  }

  #encode(): void {
    this.#outgoing.take();
    for (const [s, scheme] of this.#schemes.entries()) scheme.encode(this.#outgoing.of(s));
  }

  #reduce(): void {
    const { rank, up } = this.#context;
    this.#incoming.take(); // of a single rank, where nothing comes
    this.#results.take();
    for (const [s, scheme] of this.#schemes.entries()) {
      const wires = scheme.only === "down" ? [] : this.#incoming.of(s).with(rank, this.#outgoing.of(s)[rank]!);
      readOrAbort(up.group, () => scheme.reduce(wires, this.#results.of(s)[rank]!));
    }
    this.#incoming[Symbol.dispose]();
    this.#outgoing[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    for (const wires of [this.#outgoing, this.#incoming, this.#results]) wires[Symbol.dispose]();
  }
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
