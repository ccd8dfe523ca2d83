/** What a scheme costs one rank, as closed forms, so that docs, tests, logs and whoever chooses between schemes agree. */
import type { Volume } from "@terse/collectives";

/** Of one exchange, on one rank. */
export interface Cost {
  /** Payload that it sends, without headers. */
  readonly bytes: number;
  /** Messages that it sends; each has a header of `headerBytes`. */
  readonly messages: number;
  /** Most memory that the scheme holds at once beyond its input, results that are not the input included; not the engine's own. */
  readonly peakBytes: number;
}

/** The cost for a vector of n elements on `ranks` ranks, for one of them. */
export type CostOf = (n: number, ranks: number, rank: number) => Cost;

export const headerBytes = 32;

/** Of operations one after the other or side by side, with all the memory that they need together. */
export function costOf(operations: readonly Volume[], peakBytes = 0): Cost {
  return {
    bytes: operations.reduce((sum, { bytes }) => sum + bytes, 0),
    messages: operations.reduce((sum, { messages }) => sum + messages, 0),
    peakBytes,
  };
}
