/**
 * Random numbers for the moments of faults. The seed is in the name of every test that uses it, so that a failure can
 * be repeated.
 */
import { createHash } from "node:crypto";

/** TERSE_TEST_SEED, or a new one for every run. */
export const seed = process.env["TERSE_TEST_SEED"] ?? `${Date.now() % 1_000_000}`;

/** From 0 to 1, the same for the same seed and purpose. */
export function random(purpose: string): number {
  return createHash("sha256").update(`${seed} ${purpose}`).digest().readUInt32LE() / 2 ** 32;
}
