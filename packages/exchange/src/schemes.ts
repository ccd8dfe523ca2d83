/** The schemes that carry a run's votes and means. */
import { type DenseScheme, dense } from "./means/dense.ts";
import { allToAll } from "./votes/all-to-all.ts";
import type { VoteScheme } from "./votes/vote-scheme.ts";

export interface ChosenSchemes {
  /** How votes are counted. */
  readonly votes: VoteScheme;
  /** How means travel. */
  readonly means: DenseScheme;
}

/** Those that send least without another result. */
export const standardSchemes: ChosenSchemes = { votes: allToAll(), means: dense("f32") };
