/**
 * The ranks as a mesh of two axes, data × weight: rank = (place on the data axis) · weight + (place on the weight
 * axis). Ranks along the weight axis share the state of each matrix that an algorithm can shard, as ZeRO-1 does; all
 * ranks have their own data, and all of the parameters.
 */
export interface Parallel {
  /** Ranks along the data axis. */
  readonly data: number;
  /** Ranks along the weight axis: shards of each matrix. */
  readonly weight: number;
}

/** The ranks along the two axes through one rank, that rank among them, in ascending order. */
export interface Mesh {
  readonly data: readonly number[];
  readonly weight: readonly number[];
}

/** RangeError if data × weight is not the number of ranks. */
export function meshOf(
  { rank, size }: { rank: number; size: number },
  { data, weight }: Parallel = { data: size, weight: 1 },
): Mesh {
  if (data * weight !== size)
    throw new RangeError(
      `parallel: ${data} data-parallel × ${weight} weight-parallel ranks are ${data * weight}, and there are ${size}; take a weight that divides ${size}, and ${size} / weight for data, or leave data out in a recipe`,
    );
  const place = rank % weight;
  return {
    data: Array.from({ length: data }, (_, i) => i * weight + place),
    weight: Array.from({ length: weight }, (_, i) => rank - place + i),
  };
}
