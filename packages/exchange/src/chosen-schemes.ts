import type { DenseScheme } from "./means/dense-scheme.ts";
import type { VoteScheme } from "./votes/vote-scheme.ts";

/** The schemes that carry a run's votes and means. */
export interface ChosenSchemes {
  /** Counts votes. */
  readonly votes: VoteScheme;
  /** Carries means. */
  readonly means: DenseScheme;
}
