/** The schemes that carry a run's votes and means. */
import { type DenseScheme, dense } from "./means/dense.ts";
import { allToAll } from "./votes/all-to-all.ts";
import type { VoteScheme } from "./votes/vote-scheme.ts";

export interface ChosenSchemes {
  /** Counts votes. */
  readonly votes: VoteScheme;
  /** Carries means. */
  readonly means: DenseScheme;
}

/** The schemes that send the fewest bytes without changing the result. */
export const standardSchemes: ChosenSchemes = { votes: allToAll(), means: dense("f32") };
