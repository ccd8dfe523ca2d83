/** The picture of a run: how much of the memory's speed each codec reaches, encoding and decoding. */
import type { Measurement } from "../measurement.ts";

const [width, left, right, top, row] = [860, 250, 40, 54, 30];
const full = 1.2; // the scale's end
const colours = { encode: "#0969da", decode: "#8c959f" };

export function bars(measurements: readonly Measurement[]): string {
  const rows = new Map<string, { encode?: number; decode?: number; by: string }>();
  for (const { case: measured, metric, value } of measurements) {
    const [, label, what, by] = measured.match(/^(.*) (encode|decode), (\w+)$/) ?? [];
    if (metric !== "over_stream" || label === undefined) continue;
    rows.set(label, { ...rows.get(label), by: by!, [what!]: value });
  }
  const x = (value: number) => left + (Math.min(value, full) / full) * (width - left - right);
  const height = top + rows.size * row + 30;
  const bar = (value: number | undefined, y: number, colour: string) =>
    value === undefined
      ? ""
      : `<rect x="${left}" y="${y}" width="${(x(value) - left).toFixed(1)}" height="9" fill="${colour}"/><text class="axis" x="${(x(value) + 5).toFixed(1)}" y="${y + 8.5}" font-size="10">${value.toFixed(2)}</text>`;
  const lines = [...rows].map(([label, { encode, decode, by }], i) => {
    const y = top + i * row;
    return `<text x="${left - 10}" y="${y + 15}" text-anchor="end">${label} <tspan class="axis">${by}</tspan></text>${bar(encode, y + 2, colours.encode)}${bar(decode, y + 13, colours.decode)}`;
  });
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    (at) =>
      `<path class="grid" d="M${x(at)} ${top - 6}V${height - 28}"/><text class="axis" x="${x(at)}" y="${height - 10}" text-anchor="middle">${at}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12">
<style>.grid{stroke:#d0d7de;fill:none}text{fill:#1f2328}.axis{fill:#57606a}</style>
<rect width="${width}" height="${height}" fill="#fff"/>
<text x="${left}" y="20">floats and wire moved a second, of what streaming moves in the same run; one thread, 64 Mi floats</text>
<rect x="${left}" y="30" width="14" height="6" fill="${colours.encode}"/><text x="${left + 20}" y="37">encode</text>
<rect x="${left + 80}" y="30" width="14" height="6" fill="${colours.decode}"/><text x="${left + 100}" y="37">decode and add</text>
${grid.join("\n")}
${lines.join("\n")}
</svg>
`;
}
