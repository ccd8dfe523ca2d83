/**
 * The cost of a majority vote in the α-β model, by the Lion Cub paper's Table 1; its Figure 2 plots these functions.
 * Ishikawa et al. 2024, §3.1, Table 1 and Figure 2, https://arxiv.org/abs/2411.16462
 *
 *   P   workers                     α   latency of a message, seconds
 *   N   parameters                  β   seconds per byte (the paper's β is seconds per bit: an eighth)
 *   b   bits of a standard word     p   bits of a value; the table has p = 1
 *
 *                                      messages · α         bits · β / 8
 *   parameter server                   2 (P − 1)            2 P N b
 *   parameter server, efficient        2 log₂ P             3 (P − 1)/P N b
 *   direct all-reduce                  2 log₂ P             2 (P − 1)/P N (log₂ P + p)
 *   compressed all-reduce              P − 1 + log₂ P       (1 + (P − 1)/P) N p
 * and, for comparison, sums of whole words without compression
 *   all-reduce, recursive halving      2 log₂ P             2 (P − 1)/P N b      Thakur et al. 2005, §4.5
 *   all-reduce, ring                   2 (P − 1)            2 (P − 1)/P N b      Patarasuk and Yuan 2009
 *
 * Table 1 leaves out the time of computing and does not round logarithms. predict.ts predicts the times of our own
 * schemes on a measured network.
 */

/** A network in the α-β model. */
export interface Network {
  readonly alpha: number; // seconds per message
  readonly beta: number; // seconds per byte
}

export interface Setting {
  readonly workers: number; // P
  readonly parameters: number; // N
  readonly wordBits?: number; // b, 32 unless given
  readonly valueBits?: number; // p, 1 unless given
}

/** Seconds of latency and of bandwidth. */
export interface Time {
  readonly latency: number;
  readonly bandwidth: number;
}

/** The number of latencies in sequence, and the number of bits. */
export interface Implementation {
  readonly title: string;
  messages(P: number): number;
  bits(P: number, N: number, b: number, p: number): number;
}

const others = (P: number) => (P - 1) / P; // the share of a vector that other workers own

/** Table 1 of Ishikawa et al. 2024: latencies and bits of each way to vote. */
export const tableOne = {
  "parameter-server": {
    title: "parameter server",
    messages: (P) => 2 * (P - 1),
    bits: (P, N, b) => 2 * P * N * b,
  },
  "parameter-server-efficient": {
    title: "parameter server, efficient",
    messages: (P) => 2 * Math.log2(P),
    bits: (P, N, b) => 3 * others(P) * N * b,
  },
  direct: {
    title: "direct all-reduce of counts",
    messages: (P) => 2 * Math.log2(P),
    bits: (P, N, _b, p) => 2 * others(P) * N * (Math.log2(P) + p),
  },
  compressed: {
    title: "compressed: all-to-all, all-gather",
    messages: (P) => P - 1 + Math.log2(P),
    bits: (P, N, _b, p) => (1 + others(P)) * N * p,
  },
} as const satisfies Record<string, Implementation>;

/** All-reduces of whole words, to compare a vote with. */
export const uncompressed = {
  "recursive-halving": {
    title: "all-reduce of floats, recursive halving",
    messages: (P) => 2 * Math.log2(P),
    bits: (P, N, b) => 2 * others(P) * N * b,
  },
  ring: {
    title: "all-reduce of floats, ring",
    messages: (P) => 2 * (P - 1),
    bits: (P, N, b) => 2 * others(P) * N * b,
  },
} as const satisfies Record<string, Implementation>;

/** The time of one vote on `parameters` values. */
export function timeOf(
  implementation: Implementation,
  { workers, parameters, wordBits = 32, valueBits = 1 }: Setting,
  { alpha, beta }: Network,
): Time {
  // A single worker sends nothing; the table's formulas are for P > 1.
  if (workers === 1) return { latency: 0, bandwidth: 0 };
  return {
    latency: implementation.messages(workers) * alpha,
    bandwidth: (implementation.bits(workers, parameters, wordBits, valueBits) / 8) * beta,
  };
}

/**
 * The number of parameters at which two implementations take equally long. With fewer parameters the one with fewer
 * messages is faster, with more the one with fewer bits. `undefined` if one of them is never slower.
 */
export function crossing(
  a: Implementation,
  b: Implementation,
  { workers, wordBits = 32, valueBits = 1 }: Omit<Setting, "parameters">,
  { alpha, beta }: Network,
): number | undefined {
  const messages = a.messages(workers) - b.messages(workers);
  // Both are linear in N.
  const bits = b.bits(workers, 1, wordBits, valueBits) - a.bits(workers, 1, wordBits, valueBits);
  const parameters = (messages * alpha) / ((bits / 8) * beta);
  return parameters > 0 && Number.isFinite(parameters) ? parameters : undefined;
}
