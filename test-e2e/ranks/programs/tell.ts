import { writeSync } from "node:fs";
import { type CollectiveError, type RankLostError, RendezvousError } from "@terse/collectives";

/** Tells the harness something. Written at once, so that it arrives even if the process is killed next. */
export function tell(value: Record<string, unknown>): void {
  writeSync(1, `${JSON.stringify(value)}\n`);
}

export function tellError(error: unknown): void {
  const { name, message, rank, reason } = error as RankLostError & CollectiveError;
  const missing = error instanceof RendezvousError ? error.missing : undefined;
  tell({ error: { name, message, rank, reason, missing } });
}
