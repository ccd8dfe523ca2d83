/** Which ranks share a host, and what each of them owns of a vector. */
import type { Group } from "@terse/collectives";
import type { QueuedGroup } from "../collective-queue.ts";
import { partition } from "../partition.ts";

/** The host of each rank, as a list or as a function of the rank. */
export type HostOf = readonly number[] | ((rank: number) => number);

export interface HostLayout {
  readonly host: number; // of this rank, hosts counted in the order of their first ranks
  readonly hosts: number;
  readonly place: number; // of this rank among its host's ranks
  readonly ranksHere: number;
  readonly owners: number; // the ranks with a lower place own a part, on every host
}

export function hostLayout(hosts: HostOf, ranks: number, rank: number): HostLayout {
  if (typeof hosts !== "function" && hosts.length !== ranks)
    throw new RangeError(
      `hierarchical: hosts lists the hosts of ${hosts.length} ranks, and there are ${ranks}; list one host for each rank.`,
    );
  const hostOf = typeof hosts === "function" ? hosts : (r: number) => hosts[r]!;
  const members = new Map<number, number[]>();
  for (let r = 0; r < ranks; r++) members.set(hostOf(r), [...(members.get(hostOf(r)) ?? []), r]);
  const here = members.get(hostOf(rank))!;
  return {
    host: [...members.keys()].indexOf(hostOf(rank)),
    hosts: members.size,
    place: here.indexOf(rank),
    ranksHere: here.length,
    owners: Math.min(...[...members.values()].map(({ length }) => length)),
  };
}

/**
 * The words where the parts of one host's ranks begin. Owners share the vector, the parts of the other ranks are empty.
 */
export function ownedParts(n: number, owners: number, ranksHere: number): number[] {
  const starts = partition(n, owners);
  return [...starts, ...Array.from({ length: ranksHere - owners }, () => starts[owners]!)];
}

/**
 * A group of the ranks of this host, and, for a rank that owns a part, one of the owners of the same part on all hosts.
 */
export async function groupsOfHosts(group: QueuedGroup, hostOf: HostOf): Promise<readonly Group[]> {
  const { place, owners, host } = hostLayout(hostOf, group.size, group.rank);
  const inside = await group.split(host);
  const between = await group.split(place < owners ? place : undefined, host);
  return between ? [inside!, between] : [inside!];
}
