import { type AllToAllOptions, allToAll } from "./all-to-all.ts";
import { type AutoOptions, auto } from "./auto.ts";
import { type CountOptions, count } from "./count.ts";
import { type HierarchicalOptions, hierarchical } from "./hierarchical.ts";
import { parameterServer } from "./parameter-server.ts";
import { parameterServerEfficient } from "./parameter-server-efficient.ts";
import type { VoteScheme } from "./vote-scheme.ts";

/** The options of all schemes together. */
export type VoteSchemeOptions = AllToAllOptions & CountOptions & HierarchicalOptions & Partial<AutoOptions>;

/** Every vote scheme: a function that makes it, and the options that it takes. The names are those of recipes. */
export const voteSchemes = {
  "all-to-all": { create: allToAll, takes: ["chunk"] },
  count: { create: count, takes: ["width"] },
  "parameter-server": { create: parameterServer, takes: [] },
  "parameter-server-efficient": { create: parameterServerEfficient, takes: [] },
  hierarchical: { create: hierarchical, takes: ["ranksPerHost", "hosts", "inside"] },
  auto: { create: auto, takes: ["measured", "chunk"] },
} as const satisfies Record<string, VoteSchemeEntry>;

/** A vote scheme in the registry, and the options that it takes. */
export interface VoteSchemeEntry {
  create(options: VoteSchemeOptions): VoteScheme;
  readonly takes: readonly (keyof VoteSchemeOptions)[];
}

/** The name of a vote scheme: "all-to-all", "count", … */
export type VoteSchemeName = keyof typeof voteSchemes;
