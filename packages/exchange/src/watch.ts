/** An observer of exchanges, a meter or a trace. */
import type { PackedBits } from "./packed-bits.ts";
import type { Timer } from "./watched.ts";

/** Hears how long each part of an exchange takes, and may read this rank's votes. */
export interface Watch extends Timer {
  /** Whether it reads this rank's votes. They are then encoded at once, not piece by piece; the bits are the same. */
  readonly wantsVotes: boolean;
  /** This rank's signs, before they leave; their memory belongs to the exchange. */
  votes(u: PackedBits): void;
}
