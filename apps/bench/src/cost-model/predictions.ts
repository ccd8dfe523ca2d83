/** The picture of a run: what each exchange took, by what the model said it would; the band is 15 % to either side. */
import type { Measurement } from "../measurement.ts";

const [width, height, left, right, top, bottom] = [660, 460, 64, 44, 64, 52];
const colours = ["#d1242f", "#0969da", "#1a7f37", "#9a6700", "#8250df", "#57606a"];
const band = 0.15;

export function predictions(measurements: readonly Measurement[]): string {
  const points = new Map<string, { predicted?: number; measured?: number }>();
  for (const { case: what, metric, value } of measurements)
    if (metric === "predicted" || metric === "measured") points.set(what, { ...points.get(what), [metric]: value });
  const linkOf = (what: string) => /\S+bit\S*/.exec(what)?.[0] ?? "";
  const links = [...new Set([...points.keys()].map(linkOf))];
  const values = [...points.values()].flatMap(({ predicted, measured }) => [predicted!, measured!]);
  const [low, high] = [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];
  const along = (milliseconds: number) => (Math.log10(milliseconds) - low) / Math.max(1, high - low);
  const x = (milliseconds: number) => left + along(milliseconds) * (width - left - right);
  const y = (milliseconds: number) => height - bottom - along(milliseconds) * (height - top - bottom);
  const at = (px: number, py: number) => `${px.toFixed(1)} ${py.toFixed(1)}`;

  const powers = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  const grid = powers.map(
    (each) =>
      `<path class="grid" d="M${left} ${y(each).toFixed(1)}H${width - right}M${x(each).toFixed(1)} ${top}V${height - bottom}"/>` +
      `<text class="axis" x="${left - 8}" y="${(y(each) + 4).toFixed(1)}" text-anchor="end">${each} ms</text>` +
      `<text class="axis" x="${x(each).toFixed(1)}" y="${height - bottom + 18}" text-anchor="middle">${each} ms</text>`,
  );
  const [from, to] = [10 ** low, 10 ** high];
  const line = (factor: number) => `M${at(x(from), y(from * factor))}L${at(x(to), y(to * factor))}`;
  const dots = [...points].map(
    ([what, { predicted, measured }]) =>
      `<circle cx="${x(predicted!).toFixed(1)}" cy="${y(measured!).toFixed(1)}" r="4" fill="${colours[links.indexOf(linkOf(what)) % colours.length]}"><title>${what}</title></circle>`,
  );
  const legend = links.map(
    (link, i) =>
      `<g transform="translate(${left + i * 150} 44)"><circle cy="-4" r="4" fill="${colours[i % colours.length]}"/><text x="10">${link}</text></g>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12">
<style>.grid{stroke:#d0d7de;fill:none}.same{stroke:#57606a;fill:none}.band{stroke:#57606a;fill:none;stroke-dasharray:4 3}circle{fill-opacity:.75}text{fill:#1f2328}.axis{fill:#57606a}</style>
<rect width="${width}" height="${height}" fill="#fff"/>
<text x="${left}" y="22">what an exchange of 2 to 4 ranks took, by what was predicted; dashed: 15 % to either side</text>
${legend.join("\n")}
${grid.join("\n")}
<clipPath id="inside"><rect x="${left}" y="${top}" width="${width - left - right}" height="${height - top - bottom}"/></clipPath>
<g clip-path="url(#inside)"><path class="same" d="${line(1)}"/><path class="band" d="${line(1 / (1 + band))}${line(1 / (1 - band))}"/></g>
${dots.join("\n")}
<text class="axis" x="${(left + width - right) / 2}" y="${height - 12}" text-anchor="middle">predicted</text>
<text class="axis" x="14" y="${(top + height - bottom) / 2}" text-anchor="middle" transform="rotate(-90 14 ${(top + height - bottom) / 2})">measured</text>
</svg>
`;
}
