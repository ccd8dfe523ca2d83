/** What a measure has found: numbers of the model by key, numbers of layers by key, and what it has sent. */
export interface Measured {
  readonly model: Readonly<Record<string, number | readonly number[] | readonly string[]>>;
  /** By the name of the parameter, then by key. */
  readonly layers?: ReadonlyMap<string, Readonly<Record<string, number>>>;
  /** By all ranks together. */
  readonly bytes?: number;
}
