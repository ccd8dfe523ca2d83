/** The search for the settings at which a method ends lowest: its learning rate, and what else has an axis. */

export type Settings = Readonly<Record<string, number>>;

/** The values beside one of a setting, the lower first; `undefined` where the axis ends. */
export type Axis = (value: number) => readonly [lower: number | undefined, higher: number | undefined];

/** An axis in factors of two, without an end. */
export const doubling: Axis = (value) => [value / 2, 2 * value];

/** One of a list, in ascending order. */
export function among(values: readonly number[]): Axis {
  return (value) => {
    const place = values.indexOf(value);
    if (place < 0) throw new RangeError(`the axis has ${values.join(", ")}, and not ${value}: begin at one of these`);
    return [values[place - 1], values[place + 1]];
  };
}

export interface Tried<S extends Settings> {
  readonly settings: S;
  /** NaN where the run broke off. */
  readonly loss: number;
}

export interface Found<S extends Settings> {
  /** The best first. */
  readonly tried: readonly Tried<S>[];
  /** The settings of the best that lie at an end: the axis has no further value, or there was no run left to try it. */
  readonly atEdge: readonly string[];
}

export interface SearchOptions<S extends Settings> {
  /** Runs in all. */
  readonly most: number;
  /** Settings that grow together: a larger rate wants a longer warm-up. Steps of both at once are tried, too. */
  readonly together?: readonly string[];
  /** The settings near the best that are tried last. */
  readonly refined?: (best: S) => readonly S[];
}

/**
 * Tries `start` and its neighbours along every axis, goes on from the best, and ends where none of its neighbours is
 * better, or where no run is left. Neighbours are trained at once; what is tried does not depend on how fast.
 */
export async function search<S extends Settings>(
  start: S,
  axes: Readonly<Record<keyof S, Axis>>,
  lossOf: (settings: S) => Promise<number>,
  { most, together = [], refined = () => [] }: SearchOptions<S>,
): Promise<Found<S>> {
  const names: readonly string[] = Object.keys(axes);
  const keyOf = (settings: S) => names.map((name) => settings[name]).join(" ");
  const tried = new Map<string, Tried<S>>();
  const tryAll = async (candidates: readonly S[], limit: number) => {
    const fresh = candidates.filter((settings) => !tried.has(keyOf(settings))).slice(0, limit - tried.size);
    const results = await Promise.all(fresh.map(async (settings) => ({ settings, loss: await lossOf(settings) })));
    for (const one of results) tried.set(keyOf(one.settings), one);
    return fresh.length > 0;
  };
  const order = ({ loss }: Tried<S>) => (Number.isNaN(loss) ? Number.POSITIVE_INFINITY : loss);
  const byLoss = () => [...tried.values()].sort((a, b) => order(a) - order(b));
  /** One step towards 0 (0) or away from it (1) along some axes; undefined where one of them ends. */
  const stepped = (of: S, along: readonly string[], direction: 0 | 1): S | undefined => {
    const values = along.map((name) => [name, axes[name]!(of[name]!)[direction]] as const);
    return values.some(([, value]) => value === undefined) ? undefined : { ...of, ...Object.fromEntries(values) };
  };
  const moves = [...names.map((name) => [name]), ...(together.length > 0 ? [together] : [])];
  const neighbours = (of: S) =>
    moves
      .flatMap((along) => [stepped(of, along, 0), stepped(of, along, 1)])
      .filter((settings) => settings !== undefined);

  const coarse = Math.max(1, most - refined(start).length);
  await tryAll([start], coarse);
  while (await tryAll(neighbours(byLoss()[0]!.settings), coarse)) {}
  const { settings: best } = byLoss()[0]!;
  const isTried = (settings: S | undefined) => settings !== undefined && tried.has(keyOf(settings));
  const atEdge = names.filter((name) => !isTried(stepped(best, [name], 0)) || !isTried(stepped(best, [name], 1)));
  await tryAll(refined(best), most);
  return { tried: byLoss(), atEdge };
}

/** Steps of √2 in the rate beside the best of the steps of two, to three digits; none where no rate is searched. */
export function refinedRate<S extends Settings>(best: S): S[] {
  const { lr } = best;
  if (lr === undefined) return [];
  return [Math.SQRT1_2, Math.SQRT2].map((factor) => ({ ...best, lr: Number((factor * lr).toPrecision(3)) }));
}
