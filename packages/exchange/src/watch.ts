/** What looks on while an exchange works, and is told how long each part takes: a meter or a trace. */
import type { PackedBits } from "./packed-bits.ts";
import type { Timer } from "./watched.ts";

/** An observer of an exchange, which hears how long each part takes. */
export interface Watch extends Timer {
  /** Whether it wants this rank's votes. They are encoded at once then, not piece by piece, with the same bits. */
  readonly wantsVotes: boolean;
  /** This rank's signs, before they leave; their memory belongs to the exchange. */
  votes(u: PackedBits): void;
}
