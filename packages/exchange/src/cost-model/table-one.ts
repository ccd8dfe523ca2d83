/**
 * What a majority vote costs in the α-β model, as the Lion Cub paper counts it; its Figure 2 is these functions drawn.
 * Ishikawa et al. 2024, §3.1, Table 1 and Figure 2, https://arxiv.org/abs/2411.16462
 *
 *   P   workers                     α   seconds a message is under way
 *   N   parameters                  β   seconds a byte takes (the paper's β is per bit: 8 times less)
 *   b   bits of a standard word     p   bits of a value; the table has p = 1
 *
 *                                      messages · α         bits · β / 8
 *   parameter server                   2 (P − 1)            2 P N b
 *   parameter server, efficient        2 log₂ P             3 (P − 1)/P N b
 *   direct all-reduce                  2 log₂ P             2 (P − 1)/P N (log₂ P + p)
 *   compressed all-reduce              P − 1 + log₂ P       (1 + (P − 1)/P) N p
 * and, for comparison, words that are added up without compression
 *   all-reduce, recursive halving      2 log₂ P             2 (P − 1)/P N b      Thakur et al. 2005, §4.5
 *   all-reduce, ring                   2 (P − 1)            2 (P − 1)/P N b      Patarasuk and Yuan 2009
 *
 * Table 1 ignores what computing costs and takes logarithms as they are. What our own schemes need on a network that was measured
 * is another question: `predict.ts`.
 */

/** A network in the α-β model. */
export interface Network {
  readonly alpha: number; // s a message
  readonly beta: number; // s a byte
}

export interface Setting {
  readonly workers: number; // P
  readonly parameters: number; // N
  readonly wordBits?: number; // b, 32 unless said
  readonly valueBits?: number; // p, 1 unless said
}

/** Seconds, by where they go. */
export interface Time {
  readonly latency: number;
  readonly bandwidth: number;
}

/** How many latencies an implementation waits for and how many bits it carries. */
export interface Implementation {
  readonly title: string;
  messages(P: number): number;
  bits(P: number, N: number, b: number, p: number): number;
}

const others = (P: number) => (P - 1) / P; // the share of a vector that other workers own

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

/** All-reduces of whole words: what a vote is compared with. */
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

/** What one vote over `parameters` values takes. */
export function timeOf(
  implementation: Implementation,
  { workers, parameters, wordBits = 32, valueBits = 1 }: Setting,
  { alpha, beta }: Network,
): Time {
  if (workers === 1) return { latency: 0, bandwidth: 0 }; // nobody to send to; the table's (naïve) 2 P N b is for P > 1
  return {
    latency: implementation.messages(workers) * alpha,
    bandwidth: (implementation.bits(workers, parameters, wordBits, valueBits) / 8) * beta,
  };
}

/**
 * The number of parameters at which two implementations take as long: with fewer, the one that waits for fewer messages is faster,
 * with more, the one that carries fewer bits. `undefined` where one of them is never slower.
 */
export function crossing(
  a: Implementation,
  b: Implementation,
  { workers, wordBits = 32, valueBits = 1 }: Omit<Setting, "parameters">,
  { alpha, beta }: Network,
): number | undefined {
  const messages = a.messages(workers) - b.messages(workers);
  const bits = b.bits(workers, 1, wordBits, valueBits) - a.bits(workers, 1, wordBits, valueBits); // both are linear in N
  const parameters = (messages * alpha) / ((bits / 8) * beta);
  return parameters > 0 && Number.isFinite(parameters) ? parameters : undefined;
}
