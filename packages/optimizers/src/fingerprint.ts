/** Compares the parameters of all ranks, with 8 bytes from each. */
import type { Group } from "@terse/collectives";
import { fingerprint } from "@terse/native-optimizers";
import type { Tensor } from "@terse/tensor";

/** Ranks have different parameters: a fault of the program, never of the data. */
export class RanksDifferError extends Error {
  override name = "RanksDifferError";
}

/**
 * Checks that all ranks hold θ bit for bit the same. Otherwise it throws on every rank, and names those that differ
 * from rank 0.
 */
export async function compareRanks(group: Group, θ: Tensor, steps: number): Promise<void> {
  const prints = Array.from({ length: group.size }, () => new BigUint64Array(1));
  prints[group.rank]![0] = fingerprint(θ);
  await group.allGather(prints);
  const others = prints.flatMap(([print], rank) => (print === prints[0]![0] ? [] : [rank]));
  if (others.length > 0)
    throw new RanksDifferError(
      `after ${steps} steps rank ${others.join(", ")} ${others.length > 1 ? "hold" : "holds"} other parameters than rank 0. ` +
        "Every rank must start from the same seed, take its steps with the same options and learning rates, and run " +
        "the same build; please report it if they did.",
    );
}
