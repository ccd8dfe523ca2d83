import type { Communicator } from "@terse/native-collectives";
import type { Link } from "./link.ts";
import type { Rendezvous } from "./rendezvous/rendezvous.ts";

/** What a world knows of a group in it. */
export interface WorldGroup {
  readonly name: string; // "world", or the path of splits from it
  /** Why it has failed. */
  readonly failure: Error | undefined;
  /** Ends it with `error`, unless it has failed before. */
  fail(error: Error): void;
  close(): Promise<void>;
}

/** What a group needs to know of the world it is part of. */
export interface World {
  readonly engine: string;
  readonly emulatedLink: Link | undefined;
  /** The device, besides the CPU, whose memory it takes: "cuda:0". */
  readonly device?: string;
  readonly rendezvous: Rendezvous;
  /** This rank's end of a new group; `members` are world ranks. */
  open(name: string, members: readonly number[]): Promise<Communicator>;
  /**
   * For engines that split a group by a collective of their own. It is queued among the operations now. The result
   * opens the new group when the ranks have exchanged their colors: `color` counts the colors from 0, and is −1 for a
   * rank in no group; `members` are the world ranks of this rank's color, in their new order.
   */
  split?(
    parent: Communicator,
  ): ((name: string, members: readonly number[], color: number) => Promise<Communicator | undefined>) | undefined;
  /** From now on the world calls `fail` on the group when it fails on another rank. */
  opened(group: WorldGroup): void;
  /**
   * Reports to the other ranks that this group has failed here. `certain` is false where another rank may be the cause.
   */
  report(group: WorldGroup, error: Error, certain: boolean): Promise<void>;
  /** The group is closed and its connections are gone. */
  closed(group: WorldGroup): Promise<void>;
}
