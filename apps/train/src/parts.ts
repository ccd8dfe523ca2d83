import type { Dataset } from "@terse/data";
import type { Model } from "@terse/models";
import type { TrainingOptimizer } from "@terse/optimizers";
import type { WeightAverage } from "./weight-average.ts";

/** What a run is made of, as its recipe says. */
export interface Parts {
  readonly model: Model;
  readonly data: Dataset;
  readonly optimizer: TrainingOptimizer;
  readonly average?: WeightAverage | undefined;
}
