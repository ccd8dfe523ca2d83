/**
 * Figure 2 of the Lion Cub paper: seconds of a majority vote by ranks, a panel for each network and number of
 * parameters.
 */
import { svg } from "../svg.ts";
import { implementations, type Panel } from "./projection.ts";
import { countText, secondsText } from "./text.ts";

const styles: Record<string, { colour: string; dashes?: string }> = {
  "parameter-server": { colour: "#8c959f" },
  "parameter-server-efficient": { colour: "#9a6700" },
  direct: { colour: "#0969da" },
  compressed: { colour: "#d1242f" },
  "recursive-halving": { colour: "#57606a", dashes: "5 3" },
  ring: { colour: "#57606a", dashes: "2 3" },
};
const [panelWidth, panelHeight, left, top, between, below] = [350, 230, 62, 122, 76, 74];

/** A row of panels has one number of parameters, and all its networks or an equal part of them. */
export function picture(panels: readonly Panel[]): string {
  const networks = panels.filter(({ parameters }) => parameters === panels[0]!.parameters).length;
  const columns = [3, 2, 1].find((count) => networks % count === 0)!;
  const rows = Math.ceil(panels.length / columns);
  const width = Math.max(left + columns * (panelWidth + between) - between + 26, 850);
  const height = top + rows * (panelHeight + below);
  const legend = Object.entries(implementations).map(([name, { title }], i) => {
    const { colour, dashes } = styles[name]!;
    const [x, y] = [16 + (i % 3) * 285, 48 + Math.floor(i / 3) * 20];
    return `<g transform="translate(${x} ${y})"><path d="M0 -4h22" stroke="${colour}"${dashed(dashes)}/><text x="28">${title}</text></g>`;
  });
  const drawn = panels.map((panel, i) => {
    const x = left + (i % columns) * (panelWidth + between);
    const y = top + Math.floor(i / columns) * (panelHeight + below);
    return `<g transform="translate(${x} ${y})">${panelOf(panel)}</g>`;
  });
  const title = "A majority vote by the paper's model: lower is better";
  const style = "path{fill:none;stroke-width:2;stroke-linejoin:round}";
  return svg({ width, height, title, style }, [...legend, ...drawn]);
}

function panelOf({ network, parameters, ranks, seconds }: Panel): string {
  const all = Object.values(seconds).flat();
  const [low, high] = [Math.floor(Math.log10(Math.min(...all))), Math.ceil(Math.log10(Math.max(...all)))];
  const span = Math.max(1, high - low);
  const [first, last] = [Math.log2(ranks[0]!), Math.log2(ranks.at(-1)!)];
  const x = (count: number) => (last === first ? 0 : ((Math.log2(count) - first) / (last - first)) * panelWidth);
  const y = (time: number) => panelHeight * (1 - (Math.log10(time) - low) / span);
  const lines = Object.entries(seconds).map(([name, times]) => {
    const { colour, dashes } = styles[name]!;
    const path = times.map((time, i) => `${i ? "L" : "M"}${x(ranks[i]!).toFixed(1)} ${y(time).toFixed(1)}`).join("");
    return `<path d="${path}${times.length === 1 ? "h8" : ""}" stroke="${colour}"${dashed(dashes)}/>`;
  });
  const stride = Math.max(1, Math.ceil(span / 6));
  const levels = Array.from({ length: Math.floor(span / stride) + 1 }, (_, i) => 10 ** (low + i * stride));
  const grid = levels.map((time) => {
    const at = y(time).toFixed(1);
    return `<path class="grid" d="M0 ${at}h${panelWidth}"/><text class="axis" x="-8" y="${Number(at) + 4}" text-anchor="end">${secondsText(time).replace(/\.0 /, " ")}</text>`;
  });
  const every = Math.ceil(ranks.length / 6);
  const ticks = ranks
    .filter((_, i) => (ranks.length - 1 - i) % every === 0)
    .map(
      (count) =>
        `<text class="axis" x="${x(count).toFixed(1)}" y="${panelHeight + 18}" text-anchor="middle">${count}</text>`,
    );
  return [
    `<text y="-10" font-weight="600">${countText(parameters)} parameters, ${network.name}</text>`,
    ...grid,
    ...ticks,
    ...lines,
    `<text class="axis" x="${panelWidth / 2}" y="${panelHeight + 36}" text-anchor="middle">ranks</text>`,
  ].join("\n");
}

const dashed = (dashes?: string) => (dashes ? ` stroke-dasharray="${dashes}"` : "");
