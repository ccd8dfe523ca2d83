/** What the papers say of methods beside each other, and whether the recorded losses show it. */

import type { Spread } from "@terse/pictures/spread";
import type { RecordedLine } from "../recording.ts";
import { table } from "../table.ts";
import { type Curve, curvesOf, spreadText } from "./curves.ts";

export interface Expectation {
  readonly words: string;
  readonly source: string;
  /** The loss of the first is divided by the loss of the second with the same seed. */
  readonly methods: readonly [method: string, other: string];
  readonly holds: (ratio: Spread) => boolean;
}

export const asGood = ({ mean }: Spread) => mean <= 1.02;
export const worse = ({ least }: Spread) => least > 1;
export const better = ({ most }: Spread) => most < 1;
export const little = ({ least, mean }: Spread) => least > 1 && mean <= 1.15;
const much = ({ least }: Spread) => least > 1.1;

/**
 * "As good": at most 2 % above in the mean, or below; "behind" and "better": with every seed; "a little": at most 15 %;
 * "breaks": more than 10 % with every seed.
 */
// biome-ignore format: a table
export const expectations: readonly Expectation[] = [
  { words: "8 bits are as good as dense Lion, β₂ 0.99", source: "Lion Cub", methods: ["lion-cub-8-bits", "lion"], holds: asGood },
  { words: "8 bits are as good as dense Lion, β₂ 0.95", source: "Lion Cub", methods: ["lion-cub-8-bits-beta-0.95", "lion-beta-0.95"], holds: asGood },
  { words: "1 bit is as good as dense Lion, β₂ 0.99", source: "Lion Cub", methods: ["lion-cub", "lion"], holds: asGood },
  { words: "1 bit is behind dense Lion, β₂ 0.95", source: "Lion Cub", methods: ["lion-cub-beta-0.95", "lion-beta-0.95"], holds: worse },
  { words: "… and averaging the momenta of the first and last layers makes it better", source: "Lion Cub", methods: ["lion-cub-beta-0.95-sync", "lion-cub-beta-0.95"], holds: better },
  { words: "1 bit is behind where ties are not handled", source: "Lion Cub", methods: ["lion-cub-ties-minus", "lion-cub"], holds: worse },
  { words: "1 bit whose zeros and ties alternate is as good as 2 bits with exact zeros", source: "Lion Cub", methods: ["lion-cub", "lion-cub-zero-hold"], holds: asGood },
  { words: "averaging is as good as the majority", source: "Distributed Lion", methods: ["distributed-lion-average", "distributed-lion"], holds: asGood },
  { words: "1-bit LAMB is as good as LAMB", source: "1-bit LAMB", methods: ["one-bit-lamb", "lamb"], holds: asGood },
  { words: "LAMB with one bit and nothing else is behind 1-bit LAMB", source: "1-bit LAMB", methods: ["lamb-basic-one-bit", "one-bit-lamb"], holds: worse },
  { words: "Dion with rank d/4 is a little behind full rank", source: "Dion", methods: ["dion", "dion-rank-full"], holds: little },
  { words: "Dion with rank d/8 is a little behind d/4", source: "Dion", methods: ["dion-rank-0.125", "dion"], holds: little },
  { words: "Dion breaks without error feedback", source: "Dion", methods: ["dion-no-error-feedback", "dion"], holds: much },
  { words: "one power iteration of Dion is as good as singular values", source: "Dion", methods: ["dion", "dion-svd"], holds: asGood },
  { words: "our PowerSGD of rank 2 is as good as PyTorch's", source: "PyTorch", methods: ["adamw-powersgd-2", "pytorch-ddp-powersgd-2"], holds: asGood },
  { words: "our PowerSGD of rank 8 is as good as PyTorch's", source: "PyTorch", methods: ["adamw-powersgd-8", "pytorch-ddp-powersgd-8"], holds: asGood },
];

/** A table of those whose methods are recorded; empty where there are none. */
export function expectationsTable(lines: readonly RecordedLine[], of = expectations): string {
  const rows = of.flatMap(({ words, source, methods: [method, other], holds }) => {
    const curves = curvesOf(lines, other);
    const curve = curves.find((one) => one.method === method);
    const beside = curves.find((one) => one.method === other);
    if (!curve || !beside) return [];
    const isSearched = ({ settings }: Curve) => settings.warmup !== undefined;
    if (isSearched(curve) !== isSearched(beside))
      return [[source, words, `${method} ÷ ${other}`, "–", "one of them waits for its search"]];
    const ratio = spreadText(curve.ratio, curve.seeds);
    return [[source, words, `${method} ÷ ${other}`, ratio, holds(curve.ratio) ? "yes" : "**no**"]];
  });
  return rows.length === 0 ? "" : table(["source", "expected", "losses", "measured", "seen here"], rows);
}
