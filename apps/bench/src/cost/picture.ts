/**
 * Figure 2 of the Lion Cub paper: seconds of a majority vote by ranks, a panel for each network and number of
 * parameters.
 */
import { lineY } from "@observablehq/plot";
import { chart, powersOfTen } from "@terse/pictures/chart";
import { svg } from "@terse/pictures/svg";
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
    const { colour, dashes = "" } = styles[name]!;
    const [x, y] = [16 + (i % 3) * 285, 48 + Math.floor(i / 3) * 20];
    return `<g transform="translate(${x} ${y})"><path d="M0 -4h22" stroke="${colour}" stroke-width="2" stroke-dasharray="${dashes}"/><text x="28">${title}</text></g>`;
  });
  const drawn = panels.map((panel, i) => {
    const x = left + (i % columns) * (panelWidth + between);
    const y = top + Math.floor(i / columns) * (panelHeight + below);
    return `<g transform="translate(${x} ${y})">${panelOf(panel)}</g>`;
  });
  return svg({ width, height, title: "A majority vote by the paper's model: lower is better" }, [...legend, ...drawn]);
}

function panelOf({ network, parameters, ranks, seconds }: Panel): string {
  const all = Object.values(seconds).flat();
  const [low, high] = [Math.floor(Math.log10(Math.min(...all))), Math.ceil(Math.log10(Math.max(...all)))];
  const every = Math.ceil(ranks.length / 6);
  const drawn = chart(-left, -16, {
    width: left + panelWidth + 20,
    height: panelHeight + 56,
    marginLeft: left,
    marginRight: 20,
    marginTop: 16,
    marginBottom: 40,
    x: {
      type: "log",
      base: 2,
      domain: [ranks[0]!, Math.max(ranks.at(-1)!, ranks[0]! + 1)],
      ticks: ranks.filter((_, i) => (ranks.length - 1 - i) % every === 0),
      tickFormat: String,
      label: "ranks",
    },
    y: {
      type: "log",
      domain: [10 ** low, 10 ** Math.max(high, low + 1)],
      grid: true,
      ticks: Math.min(6, high - low),
      tickFormat: powersOfTen((time) => secondsText(time).replace(/\.0 /, " ")),
      label: null,
    },
    marks: Object.entries(seconds).map(([name, times]) => {
      const { colour, dashes = "" } = styles[name]!;
      // One number of ranks is drawn as a short line.
      const points = times.length === 1 ? [...times, ...times] : times;
      return lineY(points, {
        x: (_, i) => ranks[i] ?? ranks[0]! * 1.05,
        stroke: colour,
        strokeDasharray: dashes,
        strokeWidth: 2,
      });
    }),
  });
  return `<text y="-10" font-weight="600">${countText(parameters)} parameters, ${network.name}</text>${drawn}`;
}
