/** The Lion Cub paper's Table 1 for up to thousands of ranks, as its Figure 2 draws it. */
import { crossing, type Implementation, tableOne, timeOf, uncompressed } from "@terse/exchange";
import type { Arguments, NamedNetwork } from "./arguments.ts";

export const implementations: Record<string, Implementation> = { ...tableOne, ...uncompressed };

export interface Panel {
  readonly network: NamedNetwork;
  readonly parameters: number;
  readonly ranks: readonly number[];
  readonly seconds: Readonly<Record<string, readonly number[]>>; // by implementation and ranks
  /**
   * By ranks: above this number of parameters the compressed all-reduce is faster than the direct one; null if it
   * always is.
   */
  readonly crossing: readonly (number | null)[];
}

export function project({ networks, parameters, ranks, wordBits, valueBits }: Arguments): Panel[] {
  const counts = powersOfTwo(ranks);
  return parameters.flatMap((each) =>
    networks.map((network) => {
      const time = (implementation: Implementation, workers: number) => {
        const { latency, bandwidth } = timeOf(
          implementation,
          { workers, parameters: each, wordBits, valueBits },
          network,
        );
        return latency + bandwidth;
      };
      const { direct, compressed } = tableOne;
      return {
        network,
        parameters: each,
        ranks: counts,
        seconds: Object.fromEntries(
          Object.entries(implementations).map(([name, of]) => [name, counts.map((workers) => time(of, workers))]),
        ),
        crossing: counts.map((workers) => crossing(direct, compressed, { workers, valueBits }, network) ?? null),
      };
    }),
  );
}

/** 2, 4, 8 … and `last`, which need not be a power of two. */
function powersOfTwo(last: number): number[] {
  const counts: number[] = [];
  for (let ranks = 2; ranks < last; ranks *= 2) counts.push(ranks);
  return [...counts, last];
}
