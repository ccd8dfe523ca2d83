import { type Line, numberAt } from "../monitoring/numbers-of.ts";

/** What one run has reached. */
export interface RunResult {
  readonly run: string;
  readonly method: string;
  readonly ranks: number | undefined;
  readonly steps: number;
  readonly train: number | undefined; // the last loss
  readonly validation: number | undefined; // the last one
  readonly best: number | undefined; // the least one after a step; of the average of the weights where there is one
  readonly stepSeconds: number | undefined; // mean
  readonly exposed: number | undefined; // share of the time
  readonly seconds: number | undefined; // of all steps
  readonly bytes: number | undefined; // sent by rank 0 in all steps
}

export function resultOf(run: string, method: string, lines: readonly Line[]): RunResult {
  const last = (key: string) => lines.map((line) => numberAt(line, key)).findLast((value) => value !== undefined);
  const lastSum = (key: string) => lines.map((line) => numberAt(line, key)).findLast(Number.isFinite);
  const waits = lines.map((line) => numberAt(line, "exposed_fraction"));
  const logged = 1 + lines.reduce((most, { step }, i) => (waits[i] === undefined ? most : Math.max(most, step)), -1);
  // A run that was ended has taken the steps since its last line of training, too.
  const steps = lines.reduce(
    (most, { step, stopped }) => (stopped === undefined ? most : Math.max(most, step)),
    logged,
  );
  const exposed = waits.filter((share): share is number => Number.isFinite(share));
  const seconds = lastSum("elapsed_seconds");
  const ranks = lines.map((line) => line["ranks/compute_seconds"]).findLast(Array.isArray);
  const losses = lines.map((line) => numberAt(line, "val/loss")).filter((loss) => loss !== undefined);
  const ofAverage = "val/loss_of_average";
  const watched = lines.some((line) => numberAt(line, ofAverage) !== undefined) ? ofAverage : "val/loss"; // by save.best
  const trained = lines.filter(({ step }) => step > 0).map((line) => numberAt(line, watched));
  const finite = trained.filter((loss) => loss !== undefined && Number.isFinite(loss)) as number[];
  return {
    run,
    method,
    ranks: ranks?.length,
    steps,
    train: last("train/loss"),
    validation: losses.at(-1),
    best: finite.length === 0 ? losses.at(-1) : finite.reduce((least, loss) => Math.min(least, loss)),
    stepSeconds: seconds === undefined || logged === 0 ? lastSum("step_seconds") : seconds / logged,
    exposed: exposed.length === 0 ? undefined : exposed.reduce((sum, share) => sum + share, 0) / exposed.length,
    seconds,
    bytes: lastSum("total_bytes"),
  };
}
