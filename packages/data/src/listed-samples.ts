import type { Arrays, SampleFacts, Samples } from "./samples.ts";

interface Listed<Sample> {
  readonly training: readonly Sample[];
  readonly validation: readonly Sample[];
  batchOf(samples: readonly Sample[]): Arrays;
  close?(): void;
}

/** Samples that are listed in memory, and that nothing random changes. */
export const listedSamples = <Sample>(
  facts: Omit<SampleFacts, "trainingSamples" | "validationSamples">,
  { training, validation, batchOf, close }: Listed<Sample>,
): Samples => ({
  facts: { ...facts, trainingSamples: training.length, validationSamples: validation.length },
  training: async (rows) => batchOf(rows.map(({ sample }) => training[sample]!)),
  validation: async (samples) => batchOf(samples.map((sample) => validation[sample]!)),
  close: async () => close?.(),
});
