/** What looks on while an exchange works, and is told how long each part takes: a meter or a trace. */
import type { PackedBits } from "./packed-bits.ts";

/**
 *   encode   a codec or a fused kernel writes a wire
 *   wire     one collective, from its call until its result is here; several may be under way at once
 *   decode   an owner reduces wires, or a rank reads a result
 *   update   the optimizer's own arithmetic before, between and after its messages
 */
export type Part = "encode" | "wire" | "decode" | "update";

export interface Watch {
  /** A part has ended. Both times are milliseconds of `performance.now()`. */
  saw(part: Part, began: number, ended: number): void;
  /** Whether it wants this rank's votes. They are encoded at once then, not piece by piece, with the same bits. */
  readonly wantsVotes: boolean;
  /** This rank's signs, before they leave; their memory belongs to the exchange. */
  votes(u: PackedBits): void;
}

/** Does the work of a part. */
export function watched<T>(watch: Watch | undefined, part: Part, work: () => T): T {
  if (!watch) return work();
  const began = performance.now();
  try {
    return work();
  } finally {
    watch.saw(part, began, performance.now());
  }
}
