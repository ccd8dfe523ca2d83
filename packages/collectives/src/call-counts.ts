import type { kinds } from "@terse/native-collectives";
import { areCounts, isCount, misfit } from "./rendezvous/check-value.ts";

interface Counts {
  collectives: number;
  splits: number;
  sends: number[]; // to each rank
  recvs: number[]; // from each rank
}

/**
 * How often the ranks of a group have called each kind of operation. A rank sends its counts when it closes the group.
 */
export class CallCounts {
  /** This rank's. */
  readonly mine: Counts;
  readonly #size: number;
  readonly #closed = new Map<number, Counts>(); // those of the ranks that have closed the group

  constructor(size: number) {
    this.#size = size;
    const none = () => Array.from({ length: size }, () => 0);
    this.mine = { collectives: 0, splits: 0, sends: none(), recvs: none() };
  }

  /** Counts a call (`step` 1), or takes it back (−1). Returns how errors name this call. */
  count(kind: keyof typeof kinds, peer: number, step: 1 | -1): string {
    const { mine } = this;
    if (kind === "send") mine.sends[peer]! += step;
    else if (kind === "recv") mine.recvs[peer]! += step;
    else mine.collectives += step;
    if (kind === "send") return `send number ${mine.sends[peer]} to rank ${peer}`;
    if (kind === "recv") return `receive number ${mine.recvs[peer]} from rank ${peer}`;
    return `${kind.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} number ${mine.collectives}`;
  }

  /** What is wrong with the counts that a rank has sent when it closed the group; undefined where nothing is. */
  closed(rank: number, counts: unknown): string | undefined {
    const [sends, recvs] = [areCounts(this.#size), areCounts(this.#size)];
    const problem = misfit(counts, { collectives: isCount, splits: isCount, sends, recvs });
    if (problem === undefined) this.#closed.set(rank, counts as Counts);
    return problem;
  }

  /** What rank `here` waits for although another rank has closed the group without it; undefined where nothing is. */
  unanswered(here: number, who: string): string | undefined {
    const { mine } = this;
    for (const [rank, theirs] of this.#closed) {
      const missing =
        theirs.collectives < mine.collectives
          ? `after ${theirs.collectives} collectives, and ${who} has called ${mine.collectives}`
          : theirs.splits < mine.splits
            ? `without the split that ${who} has called`
            : theirs.sends[here]! < mine.recvs[rank]!
              ? `without the send for a receive of ${who}`
              : theirs.recvs[here]! < mine.sends[rank]!
                ? `without the receive for a send of ${who}`
                : undefined;
      if (missing !== undefined)
        return `rank ${rank} closed the group ${missing}; every rank must call the same operations before it closes`;
    }
    return undefined;
  }
}
