import { createHash } from "node:crypto";

/**
 * The seed of a rank's random numbers from `step` on: those of dropout. Ranks draw different ones, as PyTorch's processes do, and the same in
 * every run with this recipe. 32 bits, because libtorch's CPU generator uses no more.
 */
export const seedOfRank = (seed: number, rank: number, step: number): number =>
  createHash("sha256").update(`${seed} ${rank} ${step}`).digest().readUInt32LE();
