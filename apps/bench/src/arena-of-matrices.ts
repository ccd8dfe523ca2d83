import { Arena, Linear, manualSeed, Sequential } from "@terse/tensor";

/** So many matrices of m × n, with the same values in every run. */
export function arenaOfMatrices(count: number, [m, n]: readonly [m: number, n: number]): Arena {
  manualSeed(1);
  return new Arena(new Sequential(...Array.from({ length: count }, () => new Linear(n, m, { bias: false }))));
}
