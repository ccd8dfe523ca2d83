/** Reads metrics.jsonl of a run. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CheckpointError } from "@terse/checkpoint";
import type { Line } from "../shows/numbers-of.ts";

/**
 * The lines of a run's metrics.jsonl. What is no line of metrics is left out, such as a last one that was cut short. CheckpointError where there
 * is no such file.
 */
export function readMetrics(run: string): Line[] {
  const file = join(run, "metrics.jsonl");
  if (!existsSync(file))
    throw new CheckpointError(`${run} has no metrics.jsonl: name the folder of a run, such as runs/NAME-TIME`);
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((text) => {
      try {
        const line = JSON.parse(text) as Line | null;
        return typeof line?.step === "number" ? [line] : [];
      } catch {
        return [];
      }
    });
}
