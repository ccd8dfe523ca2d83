/** The picture of a run: measured over predicted times of exchanges, with a band of ± 15 %. */
import type { Measurement } from "../measurement.ts";
import { legend, rateText, svg } from "../svg.ts";

const [width, height, left, right, top, bottom] = [660, 476, 64, 44, 80, 52];
const colours = ["#d1242f", "#0969da", "#1a7f37", "#9a6700", "#8250df", "#57606a"];
const band = 0.15;

export function predictions(measurements: readonly Measurement[]): string | undefined {
  const points = new Map<string, { predicted?: number; measured?: number }>();
  for (const { case: what, metric, value } of measurements)
    if (metric === "predicted" || metric === "measured") points.set(what, { ...points.get(what), [metric]: value });
  if (points.size === 0) return undefined;
  const linkOf = (what: string) => /\d+[kmg]?bit/.exec(what)?.[0] ?? "";
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
      `<circle class="dot" cx="${x(predicted!).toFixed(1)}" cy="${y(measured!).toFixed(1)}" r="4" fill="${colours[links.indexOf(linkOf(what)) % colours.length]}"><title>${what}</title></circle>`,
  );
  const swatches = links.map(
    (link, i) =>
      [rateText(link), `<circle class="dot" cx="10" cy="-4" r="4" fill="${colours[i % colours.length]}"/>`] as const,
  );
  const title = "Measured over predicted times of exchanges of 2 to 4 ranks: a correct prediction is on the diagonal";
  const style =
    ".same{stroke:#57606a;fill:none}.band{stroke:#57606a;fill:none;stroke-dasharray:4 3}.dot{fill-opacity:.75}";
  const middle = (top + height - bottom) / 2;
  return svg({ width, height, title, style }, [
    legend([...swatches, ["± 15 %", '<path class="band" stroke="#57606a" d="M0 -4h18"/>']], 16, 48),
    ...grid,
    `<clipPath id="inside"><rect x="${left}" y="${top}" width="${width - left - right}" height="${height - top - bottom}"/></clipPath>`,
    `<g clip-path="url(#inside)"><path class="same" d="${line(1)}"/><path class="band" d="${line(1 / (1 + band))}${line(1 / (1 - band))}"/></g>`,
    ...dots,
    `<text class="axis" x="${(left + width - right) / 2}" y="${height - 12}" text-anchor="middle">predicted</text>`,
    `<text class="axis" x="14" y="${middle}" text-anchor="middle" transform="rotate(-90 14 ${middle})">measured</text>`,
  ]);
}
