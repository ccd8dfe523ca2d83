/**
 *   encode   a codec or a fused kernel writes a wire
 *   wire     one collective, from its call until its result is here; several may be under way at once
 *   decode   an owner reduces wires, or a rank reads a result
 *   update   the optimizer's own arithmetic before, between and after its messages
 */
export type Part = "encode" | "wire" | "decode" | "update";

/** Hears how long each part takes. */
export interface Timer {
  /** A part has ended. Both times are milliseconds of `performance.now()`. */
  saw(part: Part, began: number, ended: number): void;
}

/** Does the work of a part, and tells `timer` how long it took. */
export function watched<T>(timer: Timer | undefined, part: Part, work: () => T): T {
  if (!timer) return work();
  const began = performance.now();
  try {
    return work();
  } finally {
    timer.saw(part, began, performance.now());
  }
}
