/** Which ranks share a host, as their launcher says. */
import type { Group, WorldEnvironment } from "@terse/collectives";
import { OptionsError } from "@terse/options";
import { agreed } from "./end-others.ts";

/** The host of every rank, where `ranksPerHost` neighbours share one. */
export const hostsOf = (ranks: number, ranksPerHost: number): number[] =>
  Array.from({ length: ranks }, (_, rank) => Math.floor(rank / ranksPerHost));

/**
 * The host of every rank, as the number of its first rank. Throws `OptionsError` unless the ranks of each host are
 * consecutive; `asks` says for which choice, and in which key their number can be given.
 */
export async function hostsOfRanks(
  group: Group,
  { localRank, localSize }: Pick<WorldEnvironment, "localRank" | "localSize">,
  asks: { readonly choice: string; readonly key: string },
): Promise<number[]> {
  const places = Array.from({ length: group.size }, () => new Float64Array(2));
  places[group.rank]!.set([localRank, localSize]);
  await group.allGather(places);
  const hosts = places.map(([local], rank) => rank - local!);
  for (const [rank, [local, size]] of places.entries())
    if (hosts.filter((host) => host === hosts[rank]).length !== size)
      throw agreed(
        new OptionsError([
          `${asks.choice}: by its launcher rank ${rank} is number ${local} of the ${size} ranks on its host, and these do not follow each other; give the ranks of a host consecutive numbers, or set ${asks.key}`,
        ]),
      );
  return hosts;
}
