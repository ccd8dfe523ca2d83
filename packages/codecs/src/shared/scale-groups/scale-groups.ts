/**
 * Scale groups: sets of elements that share one scale. They are the whole vector, or blocks of `block` elements (the
 * last may be shorter), or segments. An empty vector has no scale group. Segments are an exception: each is a scale
 * group, and the scale of an empty one is 0.
 */
export interface ScaleGroups {
  /** Elements that share a scale. */
  readonly block?: number | undefined;
  /** Lengths of the segments that share a scale; they add up to n. */
  readonly segments?: readonly number[] | undefined;
}

/** RangeError where the segments do not add up to n. */
export function scaleGroupCount(n: number, { block, segments }: ScaleGroups): number {
  if (segments) {
    const total = segments.reduce((sum, length) => sum + length, 0);
    if (total !== n)
      throw new RangeError(
        `segments: they add up to ${total} floats, and there are ${n}; give lengths that add up to that.`,
      );
    return segments.length;
  }
  if (block) return Math.ceil(n / block);
  return n === 0 ? 0 : 1;
}

/** The scale groups as [begin, end), in order. */
export function scaleGroupsOf(n: number, { block, segments }: ScaleGroups): [begin: number, end: number][] {
  const lengths = segments ?? Array.from({ length: scaleGroupCount(n, { block }) }, () => block ?? n);
  let end = 0;
  return lengths.map((length) => {
    const begin = end;
    end = Math.min(begin + length, n);
    return [begin, end];
  });
}

/**
 * The scale groups that [begin, end) touches: the index of the first, and their number. `begin` is a multiple of
 * `block`.
 */
export function scaleGroupsWithin(
  { block, segments }: ScaleGroups,
  begin: number,
  end: number,
): [first: number, count: number] {
  if (block) return [begin / block, Math.ceil((end - begin) / block)];
  if (!segments) return [0, begin === end ? 0 : 1];
  const touched = segmentsWithin(segments, begin, end);
  return touched.length === 0 ? [0, 0] : [touched[0]!.index, touched.at(-1)!.index - touched[0]!.index + 1];
}

/** The parts of the segments that lie in [begin, end), with empty segments between them. */
export function segmentsWithin(
  segments: readonly number[],
  begin: number,
  end: number,
): { index: number; length: number }[] {
  let from = 0;
  const parts: { index: number; length: number }[] = [];
  for (const [index, segment] of segments.entries()) {
    const length = Math.min(end, from + segment) - Math.max(begin, from);
    const between = segment === 0 && from > begin && from < end;
    if (length > 0 || between) parts.push({ index, length });
    from += segment;
  }
  return parts;
}

/** A wire that begins with scales, one fp32 per scale group; `fields` are the bytes after them. */
export interface ScaledWire {
  readonly fields: Uint8Array;
  scale(group: number): number;
  setScale(group: number, scale: number): void;
  /** Whether all scales are finite and not negative, as encoders write them. */
  good(): boolean;
}

export function scaledWire(wire: Uint8Array, n: number, groups: ScaleGroups): ScaledWire {
  const count = scaleGroupCount(n, groups);
  const scales = new DataView(wire.buffer, wire.byteOffset, 4 * count);
  const scale = (r: number): number => scales.getFloat32(4 * r, true);
  return {
    fields: wire.subarray(4 * count),
    scale,
    setScale: (r, value) => scales.setFloat32(4 * r, value, true),
    good: () => Array.from({ length: count }, (_, r) => scale(r)).every((value) => value >= 0 && value < Infinity),
  };
}
