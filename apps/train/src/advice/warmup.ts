/**
 * How long a warm-up of 1-bit Adam or 1-bit LAMB would have been, from a run that has followed the variance in all of
 * its steps. The authors look at the same: 1-bit Adam freezes v once it is stable, and for 1-bit LAMB the warm-up
 * "depends on when do the LAMB's scaling coefficients become stable" (Li et al. 2021, §6,
 * https://arxiv.org/abs/2104.06069).
 *
 *   x         of a layer: ‖v̂‖ = ‖v‖ / (1 − β₂ᵗ), because v begins at 0, t: steps taken; and LAMB's trust ratio
 *   settled   each measure in the last third of the run is within 10 % of the one before that third
 *   N         the first measure from which each later one is within 10 %: its steps, of the settled layer that is last
 *
 * The numbers are ours. Layers whose x is 0 at the end have had no gradient, and do not count.
 */
import type { Layer } from "@terse/optimizers";
import { absentRanks } from "../dry-run/absent-ranks.ts";
import { shapesOf } from "../dry-run/plan.ts";
import { amountText } from "../format.ts";
import type { Line } from "../monitoring/numbers-of.ts";
import type { Recipe } from "../recipe.ts";
import { ranksOf } from "./advise.ts";

/** What has come to rest in a run, by layer. */
export interface Settled {
  readonly what: string;
  readonly layers: number;
  readonly settled: number;
  /** By so much, as a share, the others have changed since the last third began; the most first. */
  readonly moving: readonly { readonly layer: string; readonly change: number }[];
  /** Steps after which the settled layers did not change any more; null where fewer than half have settled. */
  readonly warmup: number | null;
}

const leastMeasures = 4;
const near = 0.9; // of the smaller to the larger

/** Of a run that has these lines; none where its methods do not follow the variance, or with fewer than 4 measures. */
export function settledLayers(recipe: Recipe, lines: readonly Line[]): Settled[] {
  const measured = lines.filter((line) => Array.isArray(line["layers/names"]));
  if (measured.length < leastMeasures) return [];
  const ranks = lines.map(ranksOf).findLast((count) => count !== undefined) ?? 1;
  const { optimizer } = shapesOf(recipe, absentRanks(ranks), undefined);
  const layers = new Map(optimizer.layers().map((layer) => [layer.segment.name, layer]));
  return [
    settledOf("‖v‖", measured, "layers/variance_norms", (name, norm, steps) => {
      const beta2 = layers.get(name)?.algorithm.variance?.beta2;
      return beta2 === undefined ? undefined : norm / (1 - beta2 ** steps);
    }),
    settledOf("the trust ratio", measured, "layers/ratios", (name, ratio) =>
      followsRatio(layers.get(name)) ? ratio : undefined,
    ),
  ].filter((each) => each !== undefined);
}

/** Those of 1-bit LAMB do not follow it: they keep what the warm-up has found. */
const followsRatio = (layer: Layer | undefined) =>
  layer?.algorithm.trustRatio !== undefined && layer.scalars["ratios"] === undefined;

/** `xOf`: x of a layer from its measured number; undefined where a layer has none. */
function settledOf(
  what: string,
  lines: readonly Line[],
  key: string,
  xOf: (layer: string, measured: number, steps: number) => number | undefined,
): Settled | undefined {
  const steps = lines.map(({ step }) => step + 1);
  const from = steps.findLastIndex((taken) => taken <= (2 / 3) * steps.at(-1)!);
  const series = (lines.at(-1)!["layers/names"] as string[]).flatMap((layer) => {
    const values = lines.map((line, i) => {
      const measured = (line[key] as unknown[] | undefined)?.[(line["layers/names"] as string[]).indexOf(layer)];
      return typeof measured === "number" ? xOf(layer, measured, steps[i]!) : undefined;
    });
    return values.every((value) => value !== undefined) && values.at(-1)! > 0 ? [{ layer, values }] : [];
  });
  if (series.length === 0 || from < 0) return undefined;
  const holdsFrom = (values: readonly number[], i: number) =>
    values.slice(i).every((value) => isNear(value, values[i]!));
  const [settled, moving] = [true, false].map((holds) =>
    series.filter(({ values }) => holdsFrom(values, from) === holds),
  ) as [typeof series, typeof series];
  const firsts = settled.map(({ values }) => values.findIndex((_, i) => holdsFrom(values, i)));
  return {
    what,
    layers: series.length,
    settled: settled.length,
    moving: moving
      .map(({ layer, values }) => ({ layer, change: values.at(-1)! / values[from]! - 1 }))
      .sort((a, b) => Math.abs(b.change) - Math.abs(a.change)),
    warmup: 2 * settled.length < series.length ? null : steps[Math.max(...firsts)]!,
  };
}

const isNear = (a: number, b: number) => Math.min(a, b) >= near * Math.max(a, b);

const mostNamed = 3;

/** A sentence: "‖v‖ of 12 of 14 layers changed by less than 10% over the last third of the run; …". */
export function settledText({ what, layers, settled, moving, warmup }: Settled): string {
  const named = moving.slice(0, mostNamed).map(({ layer, change }) => `${layer} (${percent(change)})`);
  const rest = moving.length > mostNamed ? [`${moving.length - mostNamed} more`] : [];
  return [
    `${what} of ${settled} of ${layers} layers changed by less than 10% over the last third of the run`,
    ...(moving.length > 0 ? [`still moving: ${[...named, ...rest].join(", ")}`] : []),
    warmup === null
      ? "so no warm-up that ends within this run would have held"
      : `a warm-up of about ${amountText(warmup, "step")} would have held${moving.length > 0 ? " for the others" : ""}`,
  ].join("; ");
}

const percent = (share: number) => `${share < 0 ? "−" : "+"}${Math.round(100 * Math.abs(share))}%`;
