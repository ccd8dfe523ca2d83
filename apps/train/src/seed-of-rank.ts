import { createHash } from "node:crypto";

/**
 * The seed of a rank's random numbers, those of dropout, from `step` on. Each rank has another one, as PyTorch's
 * processes do; a run with the same recipe has the same ones. 32 bits, because libtorch's CPU generator uses no more.
 */
export const seedOfRank = (seed: number, rank: number, step: number): number =>
  createHash("sha256").update(`${seed} ${rank} ${step}`).digest().readUInt32LE();
