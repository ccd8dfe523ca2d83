/**
 * A rank's reason for not taking the step. All ranks receive it and stop together, before any of them has changed a
 * parameter. The headers of votes and encoded sums carry it as a number, the note, so it needs no message of its own. A
 * mean in f32 has no such header: it carries NaN.
 */
import { BadWireError, NotFiniteError } from "@terse/codecs";
import type { Group } from "@terse/collectives";

/** The reasons by note; 0 is no refusal. */
const reasons = [
  undefined,
  "the loss is not finite",
  "the gradient is not finite",
  "a value is beyond what its codec can write",
  "the norm of the gradient is 2^63 or more, which is too large to work with",
] as const;

/** Why a rank does not take a step. */
export type RefusalReason = Exclude<(typeof reasons)[number], undefined>;

export function noteOf(reason: RefusalReason | undefined): number {
  return reasons.indexOf(reason);
}

/** The reason of a note that `noteOf` has given. */
export const reasonOfNote = (note: number): RefusalReason | undefined => reasons[note];

/** The same of the mean gradient, which no single rank has caused. */
export const ofMean = (reason: RefusalReason): string => reason.replace("the gradient", "the mean gradient");

/** Throws a StepRefusedError if any rank refused. `notes[r]` is the note of rank r. */
export function checkNotes(notes: readonly number[]): void {
  const rank = notes.findIndex((note) => note !== 0);
  if (rank >= 0) throw new StepRefusedError(rank, reasons[notes[rank]!] ?? `reason ${notes[rank]}`);
}

/**
 * For messages without notes. If a mean is not finite, it is not finite on every rank, and the ranks then gather their
 * notes here. Always throws, the same error on every rank.
 */
export async function throwRefusal(group: Pick<Group, "rank" | "size" | "allGather">, note: number): Promise<never> {
  const notes = Array.from({ length: group.size }, () => new Uint8Array(1));
  notes[group.rank]![0] = note;
  await group.allGather(notes);
  checkNotes(notes.map(([code]) => code!));
  throw new StepRefusedError(undefined, ofMean("the gradient is not finite"));
}

/** Thrown on every rank in the same step. No parameter was changed, but those that `unchanged` leaves out. */
export class StepRefusedError extends Error {
  override name = "StepRefusedError";
  readonly rank: number | undefined; // undefined if no single rank caused it, only the common result
  readonly reason: string;

  constructor(rank: number | undefined, reason: string, unchanged = "No rank has changed its parameters") {
    super(
      `${rank === undefined ? "the step is refused" : `rank ${rank} refuses the step`}: ${reason}. ${unchanged}. ` +
        "Lower the learning rate or clip the gradient, and go on from an earlier save.",
    );
    this.rank = rank;
    this.reason = reason;
  }
}

/** Why a rank that was alone in a refused step refuses the next step that it takes with others. */
export function reasonOf({ reason }: StepRefusedError): RefusalReason {
  return reasons.find((each) => each && [each, ofMean(each)].includes(reason)) ?? "the gradient is not finite";
}

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

/**
 * Reads wires. Only this rank knows of a wire that it cannot read, so it aborts the group; otherwise the other ranks
 * would wait for it.
 */
export function readOrAbort(group: Group, read: () => void): void {
  try {
    read();
  } catch (error) {
    if (error instanceof BadWireError) group.abort(error.message);
    throw error;
  }
}
