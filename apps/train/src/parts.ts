import type { Dataset } from "@terse/data";
import type { Model } from "@terse/models";
import type { TrainingOptimizer } from "@terse/optimizers";

/** What a run is made of, as its recipe says. */
export interface Parts {
  readonly model: Model;
  readonly data: Dataset;
  readonly optimizer: TrainingOptimizer;
}
