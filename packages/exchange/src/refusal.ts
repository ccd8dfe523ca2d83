/**
 * Why a rank will not take this step. All ranks learn it and stop together, before any of them has changed a parameter. The headers of
 * votes and encoded sums carry it as a number, the note, so no message is sent for it. A mean in f32 has no such header: it carries NaN.
 */
import type { Group } from "@terse/collectives";

/** By note; 0 is no refusal. */
const reasons = [
  undefined,
  "the loss is not finite",
  "the gradient is not finite",
  "a value is beyond what its codec can write",
] as const;

export type RefusalReason = Exclude<(typeof reasons)[number], undefined>;

export function noteOf(reason: RefusalReason | undefined): number {
  return reasons.indexOf(reason);
}

/** Throws when a rank refused. `notes[r]` is rank r's. */
export function checkNotes(notes: readonly number[]): void {
  const rank = notes.findIndex((note) => note !== 0);
  if (rank >= 0) throw new StepRefusedError(rank, reasons[notes[rank]!] ?? `reason ${notes[rank]}`);
}

/**
 * For messages that carry no notes: a mean that is not finite is so on every rank, and the ranks then ask each other why.
 * Always throws, the same error on every rank.
 */
export async function throwRefusal(group: Pick<Group, "rank" | "size" | "allGather">, note: number): Promise<never> {
  const notes = Array.from({ length: group.size }, () => new Uint8Array(1));
  notes[group.rank]![0] = note;
  await group.allGather(notes);
  checkNotes(notes.map(([code]) => code!));
  throw new StepRefusedError(undefined, "the mean gradient is not finite");
}

/** Thrown on every rank in the same step. No parameter was changed. */
export class StepRefusedError extends Error {
  override name = "StepRefusedError";
  readonly rank: number | undefined; // undefined: only the ranks' common result shows it
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
