/**
 * Stochastic rounding of linf and qsgd: draws one of x's two neighbouring levels, with probabilities whose mean is x.
 */
import type { EncodeCall } from "@terse/native-codecs";
import { draws } from "../random/random.ts";

/** For v ≥ 0: the level below v, and the fraction of the way from there to the level above. */
export type LevelBelow = (v: number) => [level: number, p: number];

export const evenly: LevelBelow = (v) => [Math.floor(v), v - Math.floor(v)];

/** level(value, i) = ± the level below |value| · factor, or the one above; at most `most`. */
export function stochastic(factor: number, most: number, below: LevelBelow, { seed, step, index }: EncodeCall) {
  const drawn = draws({ seed: seed ?? 0, step: step ?? 0, index });
  return (value: number, i: number): number => {
    const [level, p] = below(Math.min(Math.abs(value) * factor, most));
    const magnitude = level + (drawn(i, p) ? 1 : 0);
    return value < 0 ? -magnitude : magnitude;
  };
}
