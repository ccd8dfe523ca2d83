/**
 * Why a rank will not take this step, so that all ranks stop together before any of them has changed a parameter. In a vote
 * it rides as the note in the headers of the messages, and no message is sent for it. A mean carries it as NaN.
 */
import type { Group } from "@terse/collectives";

/** As notes: 0 says nothing. */
const reasons = [
  undefined,
  "the loss is not finite",
  "the gradient is not finite",
  "a value is beyond what its codec can write",
] as const;

export type RefusalReason = Exclude<(typeof reasons)[number], undefined>;

export function noteOf(reason: RefusalReason): number {
  return reasons.indexOf(reason);
}

/** Throws when a rank refused. `notes[r]` is rank r's. */
export function checkNotes(notes: readonly number[]): void {
  const rank = notes.findIndex((note) => note !== 0);
  if (rank >= 0) throw new StepRefusedError(rank, reasons[notes[rank]!] ?? `reason ${notes[rank]}`);
}

/**
 * For what carries no notes: a mean that is not finite is so on every rank, and then the ranks may ask each other why.
 * Always throws, the same on every rank.
 */
export async function throwRefusal(group: Group, note: number): Promise<never> {
  const notes = Array.from({ length: group.size }, () => new Uint8Array(1));
  notes[group.rank]![0] = note;
  await group.allGather(notes);
  checkNotes(notes.map(([code]) => code!));
  throw new StepRefusedError(undefined, "the mean gradient is not finite");
}

/** Thrown on every rank in the same step; no parameter was changed. */
export class StepRefusedError extends Error {
  override name = "StepRefusedError";
  readonly rank: number | undefined; // undefined: it shows only in what all ranks share
  readonly reason: string;

  constructor(rank: number | undefined, reason: string) {
    super(
      `${rank === undefined ? "the step is refused" : `rank ${rank} refuses the step`}: ${reason}. No rank has changed its parameters. ` +
        "Lower the learning rate or clip the gradient, and go on from the last save.",
    );
    this.rank = rank;
    this.reason = reason;
  }
}
