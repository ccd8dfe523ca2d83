import { type LockHolder, parsedJson } from "@terse/checkpoint";

/** The start of a run that has written lock.json. */
export interface Holder extends LockHolder {
  readonly start: string; // of the run, a random text that its ranks share
  readonly rank: number;
}

/** What lock.json says; undefined where it says nothing. */
export function parseHolder(text: string): Holder | undefined {
  const holder = parsedJson(text) as Holder | null | undefined;
  return typeof holder?.start === "string" ? holder : undefined;
}
