import type { TrainArguments } from "../arguments.ts";
import type { InitialWeights } from "./initial-weights.ts";

/** What the command line says of where a run begins and where its files go. */
export type RunArguments = Pick<
  TrainArguments,
  "recipe" | "out" | "resume" | "logDir" | "initFrom" | "newHead" | "base" | "overrides"
> & {
  /** What the folder of `initFrom` says. */
  readonly weights?: InitialWeights | undefined;
};
