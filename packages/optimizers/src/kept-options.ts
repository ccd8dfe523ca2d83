/**
 * Options that a run keeps when it goes on from a save, because its state depends on them, or because they have had
 * their effect. Every other option takes effect in the next step.
 */

/** A run's options until its save after `step` steps, and those with which it goes on. */
export interface OptionsChange<Options> {
  readonly before: Options;
  readonly after: Options;
  readonly step: number;
  /** With local steps, the most that a rank has taken since its last round. */
  readonly sinceRound?: number | undefined;
}

/** The reason why each option is kept, by its name. Options that have not changed are not looked at. */
export type KeptOptions<Options> = (change: OptionsChange<Options>) => Readonly<Partial<Record<keyof Options, string>>>;

export const makesState = "the optimizer's state depends on it";

/** For options such as `maskEvery`, which have a state only where they are above 0. */
export const keptAboveZero = <Option extends string>(option: Option) =>
  (({ before, after }) => (before[option] > 0 === after[option] > 0 ? {} : { [option]: makesState })) as KeptOptions<
    Record<Option, number>
  >;

/** The options of an entry of `algorithms` or `gradientCompressions` that differ and are kept, with the reasons. */
export function refusedOptions(entry: object, change: OptionsChange<object>): ReadonlyMap<string, string> {
  const { kept } = entry as { kept?: KeptOptions<object> };
  const [old, now] = [change.before, change.after] as [Record<string, unknown>, Record<string, unknown>];
  const reasons = kept?.(change) ?? {};
  const differs = ([option]: [string, string]) => JSON.stringify(old[option]) !== JSON.stringify(now[option]);
  return new Map(Object.entries<string>(reasons).filter(differs));
}
