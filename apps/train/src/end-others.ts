/** What a failing rank does for the others. */
import { setTimeout as pause } from "node:timers/promises";
import type { Group } from "@terse/collectives";
import { StepRefusedError } from "@terse/exchange";
import { RanksDifferError } from "@terse/optimizers";
import { firstOf, sentence } from "./failure.ts";

/** Every rank finds a fault of the recipe by itself, on a slow machine a little later. */
const graceMilliseconds = 200;

/** The errors of which the other ranks know. */
const known = new WeakSet<Error>();

/** Marks an error that every rank throws, because all have read the same messages. */
export function agreed<E extends Error>(error: E): E {
  known.add(error);
  return error;
}

/**
 * Aborts the group with this rank's reason, so that the others stop at once. Not called after an error that every rank
 * throws by itself: an abort overtakes messages, and would end a rank that has not yet read the one that tells it of
 * the error.
 */
export async function endOthers(group: Group, thrown: unknown): Promise<void> {
  const error = firstOf(thrown);
  if (error instanceof StepRefusedError || error instanceof RanksDifferError) return;
  if (error instanceof Error && known.has(error)) return;
  await pause(graceMilliseconds);
  group.abort(sentence(error));
  if (error instanceof Error) known.add(error);
}
