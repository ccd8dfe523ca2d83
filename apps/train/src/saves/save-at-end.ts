import { setTimeout as sleep } from "node:timers/promises";
import { CheckpointError } from "@terse/checkpoint";
import type { Interruption } from "../interruption.ts";
import type { Journal } from "../journal.ts";
import type { Run } from "./run.ts";

/** Seconds between tries, the last one again and again, and how many tries there are. */
const waits = [1, 2, 4, 8, 10];
const mostTries = 60;
const mostTriesAfterSignal = 5; // 15 seconds

/**
 * The last save. Where a disk does not take it, the ranks wait and try again: for about ten minutes or until
 * `interruption`, or for 15 seconds after a signal. Throws `CheckpointError` on all ranks alike.
 */
export async function saveAtEnd(step: number, run: Run, journal: Journal, interruption?: Interruption): Promise<void> {
  for (let tries = 1; ; tries++) {
    const failure = await run.save(step);
    if (failure === undefined) return;
    run.checkFolder();
    const { why, lasts } = failure;
    const hopeless = lasts || tries === (interruption ? mostTries : mostTriesAfterSignal);
    if (hopeless || (await interruption?.agreed()) !== undefined)
      throw new CheckpointError(`step ${step} could not be saved: ${why}`);
    const seconds = waits[Math.min(tries, waits.length) - 1]!;
    journal.note(`step ${step} could not be saved: ${why}; tries again in ${seconds} s`);
    await sleep(1000 * seconds);
  }
}
