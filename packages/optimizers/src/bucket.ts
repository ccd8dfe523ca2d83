import type { Span } from "./parameter-groups.ts";

/** Spans whose messages leave together. */
export interface Bucket {
  readonly spans: readonly Span[];
}

export const elementsOf = ({ spans }: Bucket): number => spans.reduce((sum, { vector }) => sum + vector.n, 0);
