import type { DenseScheme, DenseType } from "./means/dense-scheme.ts";
import type { VoteScheme } from "./votes/vote-scheme.ts";

/** The schemes that carry a run's votes and means. */
export interface ChosenSchemes {
  /** Counts votes. */
  readonly votes: VoteScheme;
  /** Carries means. */
  readonly means: DenseScheme;
  /** The type in which what an owner has computed goes to all ranks. */
  readonly computed: DenseType;
}
