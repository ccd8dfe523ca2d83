/** How ranks that form a group find each other: in this process (loopback) or through the rendezvous server. */
export interface Meeting {
  /** Waits until all `members` (world ranks) have come with a value; each gets all values, in the members' order. */
  gather(key: string, members: readonly number[], value: unknown): Promise<unknown[]>;
  /** The same, but `values[i]` is for member i: each gets what the others had for it. */
  trade(key: string, members: readonly number[], values: readonly unknown[]): Promise<unknown[]>;
  /** This rank will not use the group again. Resolves when nobody needs its connections any more; never rejects. */
  leave(group: string, members: readonly number[], value: unknown): Promise<void>;
  /** `heard` is told when another rank leaves the group. */
  onLeave(group: string, heard: (rank: number, value: unknown) => void): void;
}
