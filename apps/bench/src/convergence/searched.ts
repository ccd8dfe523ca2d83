/** The settings of a method that searches its own: the search with the first seed, as it is recorded. */
import type { Measurement } from "../measurement.ts";
import { refinedRate, type Settings, search } from "./search.ts";
import { nameOf, type searchOf } from "./settings.ts";
import type { Trained } from "./training.ts";

interface Searched {
  readonly chosen: Settings;
  /** The run with the chosen settings. */
  readonly run: Trained;
}

/** Trains at most `most` times. */
export async function* searched(
  name: string,
  { start, axes, together }: ReturnType<typeof searchOf>,
  most: number,
  train: (settings: Settings) => Promise<Trained>,
): AsyncGenerator<Measurement, Searched> {
  const runs = new Map<string, Trained>();
  const lossAt = async (settings: Settings) => {
    const run = await train(settings);
    runs.set(nameOf(settings), run);
    return run.points.at(-1)!.loss;
  };
  const { tried, atEdge } = await search(start, axes, lossAt, { most, together, refined: refinedRate });
  const inCase = { case: `${name}, search` };
  for (const { settings, loss } of tried)
    yield { ...inCase, metric: `loss_at_${nameOf(settings)}`, value: loss, unit: "nats/byte" };
  for (const setting of atEdge) yield { ...inCase, metric: `${setting}_at_edge`, value: 1, unit: "" };
  const chosen = tried[0]!.settings;
  return { chosen, run: runs.get(nameOf(chosen))! };
}
