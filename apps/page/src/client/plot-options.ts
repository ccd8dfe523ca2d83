import uPlot from "uplot";
import { colour, dash, named } from "./colours.ts";
import { quantity, type Unit } from "./quantities.ts";
import type { By } from "./run-data.ts";
import type { Series } from "./series.ts";
import { unitsOfX } from "./units-of-x.ts";

const timeMarks = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800];
const roundMarks = Array.from({ length: 14 }, (_, power) => [1, 2, 5].map((first) => first * 10 ** power)).flat();

export const height = 220;

interface Shown {
  readonly by: By;
  readonly unit: Unit;
  readonly stacked: boolean;
  readonly width: number;
  isHidden(label: string): boolean;
}

/** How uPlot draws these series: its lines, its axes, and its cursor, which all charts share. */
export function plotOptions(series: readonly Series[], { by, unit, stacked, width, isHidden }: Shown): uPlot.Options {
  const [text, grid] = [named("quiet"), named("grid")];
  const axis = {
    stroke: text,
    grid: { stroke: grid, width: 1 },
    ticks: { stroke: grid, width: 1, size: 5 },
    font: "12px system-ui, sans-serif",
  };
  const marks = (unitOf: Unit) => (_: uPlot, splits: number[]) => {
    const step = splits.length > 1 ? splits[1]! - splits[0]! : undefined;
    return splits.map((split) => quantity(split, unitOf, step));
  };
  const lines = series.map(({ colour: i, points = false, faint = false, label }, at): uPlot.Series => {
    const stroke = colour(i);
    return {
      label,
      show: !isHidden(label),
      stroke,
      width: stacked ? 1 : faint ? 1.25 : 2,
      alpha: faint ? 0.7 : 1,
      dash: [...dash(i)],
      spanGaps: true,
      ...(stacked && { fill: stroke }),
      points: { show: points || series[at]!.x.length < 2, size: 6, fill: stroke },
    };
  });
  return {
    width,
    height,
    series: [{}, ...lines],
    scales: {
      x: { time: false, range: (_, min, max) => (max > min ? [min, max] : [min - 0.5, max + 0.5]) },
      y: { range: (_, min, max) => rangeOf(min, max, stacked) },
    },
    axes: [
      {
        ...axis,
        values: marks(unitsOfX[by]),
        size: 32,
        space: 60,
        incrs: { steps: roundMarks, seconds: [0.001, 0.01, 0.1, ...timeMarks], bytes: roundMarks }[by],
      },
      {
        ...axis,
        values: marks(unit),
        size: (_, values) => 14 + 7 * Math.max(3, ...(values ?? []).map((value) => value.length)),
        space: 38,
      },
    ],
    bands: stacked ? series.slice(1).map((_, i) => ({ series: [i + 2, i + 1] as [number, number] })) : [],
    legend: { show: false },
    cursor: {
      sync: { key: `by ${by}`, setSeries: false },
      drag: { x: true, y: false },
      points: { size: 7 },
      y: false,
    },
  };
}

/** From 0 where that costs no more than a third of the height. */
function rangeOf(min: number | null, max: number | null, stacked: boolean): [number, number] {
  if (min === null || max === null) return [0, 1];
  const from = stacked || (min >= 0 && min < max / 3) ? 0 : min;
  const room = (max - from || Math.abs(max) || 1) * 0.06;
  return [from === 0 ? 0 : from - room, max + room];
}

/**
 * All series on one axis, as uPlot takes them. Where `isHidden` is given their values are added up, but for hidden
 * ones.
 */
export function joined(series: readonly Series[], isHidden?: (i: number) => boolean): uPlot.AlignedData {
  if (isHidden) {
    const x = series[0]!.x;
    const sum = new Float64Array(x.length);
    const sums = series.map(({ y }, i) => {
      if (!isHidden(i)) for (const [at, value] of y.entries()) sum[at]! += value;
      return [...sum];
    });
    return [[...x], ...sums];
  }
  return uPlot.join(series.map(({ x, y }) => [[...x], [...y]] as uPlot.AlignedData));
}
