import { writeSync } from "node:fs";
import { type CollectiveError, type RankLostError, RendezvousError } from "@terse/collectives";

/** Reports a value to the test. It is written at once, so that it arrives even if the process is killed next. */
export function report(value: Record<string, unknown>): void {
  writeSync(1, `${JSON.stringify(value)}\n`);
}

export function reportError(error: unknown): void {
  const { name, message, rank, reason } = error as RankLostError & CollectiveError;
  const missing = error instanceof RendezvousError ? error.missing : undefined;
  report({ error: { name, message, rank, reason, missing } });
}
