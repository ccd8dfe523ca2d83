/**
 * The cost of a scheme on one rank, in closed form: documents, tests, logs and the choice between schemes use the same
 * formula.
 */
import type { Volume } from "@terse/collectives";

/** The cost of one exchange on one rank. */
export interface Cost {
  /** Payload that it sends, without headers. */
  readonly bytes: number;
  /** Messages that it sends; each has a header of `headerBytes`. */
  readonly messages: number;
  /**
   * The most memory that the scheme holds at once besides its input. Separate results count, the engine's memory does
   * not.
   */
  readonly peakBytes: number;
}

/** The bytes of a message's header. */
export const headerBytes = 32;

/** The cost of vectors that are carried together: they share their messages, and are all held at once. */
export function costTogether(costs: readonly Cost[]): Cost {
  return {
    bytes: costs.reduce((sum, { bytes }) => sum + bytes, 0),
    messages: Math.max(0, ...costs.map(({ messages }) => messages)),
    peakBytes: costs.reduce((sum, { peakBytes }) => sum + peakBytes, 0),
  };
}

/** The cost of several operations, sequential or concurrent, with the peak of all their memory. */
export function costOf(operations: readonly Volume[], peakBytes = 0): Cost {
  return {
    bytes: operations.reduce((sum, { bytes }) => sum + bytes, 0),
    messages: operations.reduce((sum, { messages }) => sum + messages, 0),
    peakBytes,
  };
}
