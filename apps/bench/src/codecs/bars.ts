/** The picture of a run: how much of the memory's speed each codec reaches when it encodes and decodes. */
import type { Measurement } from "../measurement.ts";
import { legend, svg, swatch } from "../svg.ts";

const [width, left, right, top, row] = [860, 250, 40, 72, 30];
const full = 1.2; // the end of the scale

export function bars(measurements: readonly Measurement[]): string | undefined {
  const rows = new Map<string, { encode?: number; decode?: number; by: string }>();
  for (const { case: measured, metric, value } of measurements) {
    const [, label, what, by] = measured.match(/^(.*) (encode|decode), (\w+)$/) ?? [];
    if (metric !== "over_stream" || label === undefined) continue;
    rows.set(label, { ...rows.get(label), by: by!, [what!]: value });
  }
  if (rows.size === 0) return undefined;
  const x = (value: number) => left + (Math.min(value, full) / full) * (width - left - right);
  const height = top + rows.size * row + 50;
  const bar = (value: number | undefined, y: number, colour: "own" | "peer") =>
    value === undefined
      ? ""
      : `<rect x="${left}" y="${y}" width="${(x(value) - left).toFixed(1)}" height="9" class="${colour}"/><text class="axis" x="${(x(value) + 5).toFixed(1)}" y="${y + 8.5}" font-size="10">${value.toFixed(2)}</text>`;
  const lines = [...rows].map(([label, { encode, decode, by }], i) => {
    const y = top + i * row;
    return `<text x="${left - 10}" y="${y + 15}" text-anchor="end">${label} <tspan class="axis">${by}</tspan></text>${bar(encode, y + 2, "own")}${bar(decode, y + 13, "peer")}`;
  });
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    (at) =>
      `<path class="grid" d="M${x(at)} ${top - 6}V${height - 48}"/><text class="axis" x="${x(at)}" y="${height - 32}" text-anchor="middle">${at}</text>`,
  );
  const swatches = [
    ["encode", swatch("own")],
    ["decode and add", swatch("peer")],
  ] as const;
  const scale = `<text class="axis" x="${x(0.5)}" y="${height - 10}" text-anchor="middle">bytes of floats and wire a second ÷ bytes that streaming moves in the same run</text>`;
  const title =
    "Codecs beside plain streaming through memory, one thread, 64 Mi floats: longer is better, 1 is memory speed";
  return svg({ width, height, title }, [legend(swatches, 16, 46), ...grid, ...lines, scale]);
}
