/** Stochastic levels, of linf and qsgd: of two neighbouring levels the upper one is drawn so often that the mean is x. */
import type { EncodeCall } from "@terse/native-codecs";
import { draws } from "../random/random.ts";

/** The level below v, which is 0 or more, and how far v is on the way to the one above. */
export type Below = (v: number) => [level: number, p: number];

export const evenly: Below = (v) => [Math.floor(v), v - Math.floor(v)];

/** level(value, i) = ±(the level below |value| · factor, or the one above); rounding does not lead beyond `most`. */
export function stochastic(factor: number, most: number, below: Below, { seed, step, index }: EncodeCall) {
  const drawn = draws({ seed: seed ?? 0, step: step ?? 0, index });
  return (value: number, i: number): number => {
    const [level, p] = below(Math.min(Math.abs(value) * factor, most));
    const magnitude = level + (drawn(i, p) ? 1 : 0);
    return value < 0 ? -magnitude : magnitude;
  };
}
