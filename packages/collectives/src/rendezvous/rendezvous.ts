/** How the ranks of a group exchange small values before they are connected. */
import { defaultOutageSeconds } from "./outage.ts";
import type { AbortReason } from "./protocol.ts";

/**
 * The exchange of small values, in this process (loopback) or by the rendezvous server. `members` are world ranks;
 * results are in their order.
 */
export interface Rendezvous {
  /** Waits until all members have called it; the result is every member's `value`. */
  allGather(key: string, members: readonly number[], value: unknown): Promise<unknown[]>;
  /**
   * As `allGather`, with a value for each member: `values[i]` is for member i. Resolves to each member's value for this
   * rank.
   */
  allToAll(key: string, members: readonly number[], values: readonly unknown[]): Promise<unknown[]>;
  /** This rank will not use the group again. Resolves when no member needs its connections any more; never rejects. */
  leave(group: string, members: readonly number[], value: unknown): Promise<void>;
  /** `listener` is called when another rank leaves the group, with the value that it gave. */
  onLeave(group: string, listener: (rank: number, value: unknown) => void): void;
}

/** The rendezvous of ranks in several processes, which also tells them why a group has failed. */
export interface WorldRendezvous extends Rendezvous {
  readonly rank: number;
  /** A link may be down for so long. */
  readonly outageSeconds: number;
  abort(group: string, reason: AbortReason, message: string): void;
  /** Resolves when the server hears this rank's heartbeat. */
  heartbeatHeard(): Promise<void>;
}

/** The rendezvous of a world of one rank. */
export const rendezvousOfOne: WorldRendezvous = {
  outageSeconds: defaultOutageSeconds,
  rank: 0,
  allGather: async (_key, _members, value) => [value],
  allToAll: async (_key, _members, values) => [...values],
  leave: async () => {},
  onLeave: () => {},
  abort: () => {},
  heartbeatHeard: async () => {},
};
