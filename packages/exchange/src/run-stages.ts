/**
 * Runs an exchange, stage by stage: one place for the queues, the notes, the watch's times and the release of the
 * groups.
 *
 *   work     this rank encodes, or reduces what has come; a value that a codec cannot write is this rank's refusal
 *   call     the collectives leave, in the order of the group's queue, with this rank's note in their headers
 *   release  after the last stage on a group the next exchange may begin there
 *   arrive   all ranks have the notes, and throw the same StepRefusedError where one of them refuses
 */
import type { QueuedGroup } from "./collective-queue.ts";
import type { ExchangeContext } from "./exchange-context.ts";
import { checkNotes, failureOf, noteOf } from "./refusal.ts";
import { watched } from "./watched.ts";

export interface Stage {
  /** The group of its collectives: up to those who reduce, or down to all. */
  readonly on: "up" | "down";
  /** The work before the collectives leave; a watch hears of it by these names. */
  readonly encode?: (() => void) | undefined;
  readonly decode?: (() => void) | undefined;
  /**
   * Calls the collectives. Resolves when their data has arrived: to the ranks' notes, or to nothing where no header
   * carries them. Not called for a single rank.
   */
  call(group: QueuedGroup, note: number): Promise<readonly number[] | undefined>;
  /** Reads the data, which are the same on all ranks, before the next stage. If it throws, it throws on every rank. */
  readonly arrived?: () => void;
  /** Some of its calls wait for the data of earlier ones. */
  readonly inTurn?: boolean;
}

export async function runStages(stages: readonly Stage[], context: ExchangeContext): Promise<void> {
  const lastUp = stages.findLastIndex(({ on }) => on === "up");
  const release = (i: number) => {
    if (i === stages.length - 1) context.allCalled();
    else if (i >= lastUp) context.upCalled();
  };
  release(-1);
  let { note } = context;
  for (const [i, stage] of stages.entries()) {
    const found = workOf(stage, context);
    note ||= found;
    const arrived = called(stage, note, context);
    if (!stage.inTurn) release(i);
    const notes = await arrived;
    if (stage.inTurn) release(i);
    if (notes) checkNotes(notes);
    stage.arrived?.();
  }
}

/** A part of a vector that goes up and comes down by itself. */
export interface Piece extends Disposable {
  readonly up: Stage;
  /** Reduces what has arrived. */
  reduce(): void;
  /** Calls the collectives that bring the results down; absent where every rank reduces everything. */
  down?(group: QueuedGroup): Promise<unknown>;
}

/**
 * Runs pieces one after the other: while one is on the wire, the next one does its work. Each is made when its turn
 * comes. It is freed when the collectives of its results have been called, or, without any, when it has been reduced.
 */
export async function runPipeline(makers: readonly (() => Piece)[], context: ExchangeContext): Promise<void> {
  const begin = (k: number) => {
    const piece = makers[k]!();
    const found = workOf(piece.up, context);
    const arrived = called(piece.up, context.note || found, context);
    arrived.catch(() => {}); // the loop below reports it
    return { piece, arrived };
  };
  const results: Promise<unknown>[] = [];
  let next: ReturnType<typeof begin> | undefined = begin(0);
  try {
    for (let k = 0; k < makers.length; k++) {
      const { piece, arrived } = next!;
      using _ = piece;
      next = undefined;
      try {
        if (k + 1 < makers.length) next = begin(k + 1);
      } catch (error) {
        await Promise.allSettled([arrived]); // until then the memory belongs to the group
        throw error;
      }
      if (k + 2 >= makers.length) piece.down ? context.upCalled() : context.allCalled(); // the last one has been sent
      checkNotes((await arrived) ?? []);
      watched(context.watch, "decode", () => piece.reduce());
      if (piece.down) results.push(piece.down(context.down));
      for (const result of results) result.catch(() => {}); // reported below
    }
    context.allCalled();
    await Promise.all(results);
  } finally {
    await Promise.allSettled([...results, next?.arrived]); // as above
    next?.piece[Symbol.dispose]();
  }
}

/** Does a stage's work. Returns the note of this rank's refusal, 0 without one. */
function workOf({ encode, decode }: Stage, { watch }: ExchangeContext): number {
  const failure = failureOf(() => {
    if (encode) watched(watch, "encode", encode);
    if (decode) watched(watch, "decode", decode);
  });
  return noteOf(failure);
}

function called(
  { on, call }: Stage,
  note: number,
  { up, down, size }: ExchangeContext,
): Promise<readonly number[] | undefined> {
  return size === 1 ? Promise.resolve([note]) : call(on === "up" ? up : down, note);
}
