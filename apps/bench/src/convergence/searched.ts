/** The runs of a method, and the search of its settings, as it is recorded. */
import type { Measurement } from "../measurement.ts";
import { refinedRate, type Settings, search } from "./search.ts";
import { nameOf, type searchOf } from "./settings.ts";
import type { Trained } from "./training.ts";

type Search = ReturnType<typeof searchOf>;

interface Found {
  readonly chosen: Settings;
  /** One for each seed. */
  readonly runs: readonly Trained[];
}

/** Trains with each seed, at settings that are known or that a search of at most `most` runs with the first finds. */
export async function* withSeeds(
  name: string,
  seeds: readonly number[],
  searching: Search | { readonly chosen: Settings },
  most: number,
  train: (settings: Settings, seed: number) => Promise<Trained>,
): AsyncGenerator<Measurement, Found> {
  const { chosen, first } =
    "chosen" in searching
      ? { ...searching, first: undefined }
      : yield* searched(name, searching, most, (settings) => train(settings, seeds[0]!));
  const runs = await Promise.all(seeds.map((seed, i) => (i === 0 && first) || train(chosen, seed)));
  return { chosen, runs };
}

/** The settings of the search, and the run with them. */
async function* searched(
  name: string,
  { start, axes, together }: Search,
  most: number,
  train: (settings: Settings) => Promise<Trained>,
): AsyncGenerator<Measurement, { chosen: Settings; first: Trained }> {
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
  return { chosen, first: runs.get(nameOf(chosen))! };
}
