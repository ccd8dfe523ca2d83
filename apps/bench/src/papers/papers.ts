/**
 * `bench papers`: every figure and table of the four papers, a row each: what it claims, what is measured here, and
 * whether the claim holds by a rule that is written down. A row is a setting of the suite and can be measured again
 * alone; trainings that a row has finished are kept until the row is complete (../kept-runs.ts). Rows that another
 * suite has measured take its recorded lines.
 *
 * The metric `verdict` of a row is 1 (yes), 0 (no), or not a number where it cannot be measured here.
 */
import type { Measurement } from "../measurement.ts";
import type { Suite } from "../suite.ts";
import { dion } from "./dion.ts";
import { distributedLion } from "./distributed-lion.ts";
import { type Items, isMeasurable, Readings } from "./item.ts";
import { lionCub } from "./lion-cub.ts";
import { oneBitLamb } from "./one-bit-lamb.ts";

/** The papers, with their rows by setting. */
export const papers: readonly { readonly name: string; readonly source: string; readonly items: Items }[] = [
  {
    name: "Lion Cub",
    source: "Ishikawa, Ben-Nun, Van Essen, Yokota, Dryden 2024, https://arxiv.org/abs/2411.16462",
    items: lionCub,
  },
  { name: "Dion", source: "Ahn and Xu 2025, https://arxiv.org/abs/2504.05295v1", items: dion },
  {
    name: "Distributed Lion",
    source: "Liu et al. 2024, the slides, https://arxiv.org/abs/2404.00438",
    items: distributedLion,
  },
  { name: "1-bit LAMB", source: "Li et al. 2021, https://arxiv.org/abs/2104.06069", items: oneBitLamb },
];

const all: Items = Object.assign({}, ...papers.map(({ items }) => items));

export const papersSuite: Suite = Object.fromEntries(Object.keys(all).map((name) => [name, () => row(name)]));

async function* row(name: string): AsyncGenerator<Measurement> {
  const item = all[name]!;
  const inCase = { case: name };
  const began = performance.now();
  if (!isMeasurable(item)) {
    yield { ...inCase, metric: "verdict", value: Number.NaN, unit: "" };
    return;
  }
  const values = new Map<string, number>();
  for await (const one of item.measure(name)) {
    values.set(one.metric, one.value);
    yield { ...inCase, ...one };
  }
  yield { ...inCase, metric: "verdict", value: Number(item.holds(new Readings(values))), unit: "" };
  yield { ...inCase, metric: "minutes", value: (performance.now() - began) / 60_000, unit: "min" };
}
