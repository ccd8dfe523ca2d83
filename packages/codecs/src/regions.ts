/**
 * Regions: which elements share a scale. The whole vector, blocks of `block` elements (the last may be shorter), or segments.
 * No region where there is nothing, but one a segment where segments are given: empty ones have a scale of 0.
 */
export interface Regions {
  /** Elements that share a scale. */
  readonly block?: number | undefined;
  /** Lengths of the segments that share a scale; they add up to n. */
  readonly segments?: readonly number[] | undefined;
}

export function regionCount(n: number, { block, segments }: Regions): number {
  if (segments) return segments.length;
  if (block) return Math.ceil(n / block);
  return n === 0 ? 0 : 1;
}

/** Each region as [begin, end), in order. */
export function regionsOf(n: number, { block, segments }: Regions): [begin: number, end: number][] {
  const lengths = segments ?? Array.from({ length: regionCount(n, { block }) }, () => block ?? n);
  let end = 0;
  return lengths.map((length) => {
    const begin = end;
    end = Math.min(begin + length, n);
    return [begin, end];
  });
}
