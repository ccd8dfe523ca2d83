import { type AllToAllOptions, allToAll } from "./all-to-all.ts";
import { type AutoOptions, auto } from "./auto.ts";
import { type CountOptions, count } from "./count.ts";
import { type HierarchicalOptions, hierarchical } from "./hierarchical.ts";
import { parameterServer } from "./parameter-server.ts";
import { parameterServerEfficient } from "./parameter-server-efficient.ts";
import type { VoteScheme } from "./vote-scheme.ts";

export type VoteSchemeOptions = AllToAllOptions & CountOptions & Partial<HierarchicalOptions> & Partial<AutoOptions>;

/** Every way to count votes, by the name that recipes use; each takes its own of the options and leaves the others alone. */
export const voteSchemes = {
  "all-to-all": allToAll,
  count,
  "parameter-server": parameterServer,
  "parameter-server-efficient": parameterServerEfficient,
  hierarchical: ({ hosts, inside }: Partial<HierarchicalOptions>) => {
    if (hosts === undefined)
      throw new RangeError("hierarchical: hosts is missing; say how many ranks share a host, or each rank's host.");
    return hierarchical({ hosts, ...(inside && { inside }) });
  },
  auto: ({ measured, chunk }: Partial<AutoOptions>) => {
    if (measured === undefined)
      throw new RangeError("auto: measured is missing; give it what measureLink found on the group that will vote.");
    return auto({ measured, chunk });
  },
} as const satisfies Record<string, (options: VoteSchemeOptions) => VoteScheme>;

export type VoteSchemeName = keyof typeof voteSchemes;
