/**
 * Pictures with horizontal bars, in panels with a scale each: ours in blue, peers in grey, waiting times in a lighter
 * shade.
 */
import { barX, ruleY, text, tickX } from "@observablehq/plot";
import { chart } from "@terse/pictures/chart";
import { legend, svg, swatch } from "@terse/pictures/svg";

export interface Bar {
  readonly label: string;
  readonly value: number;
  /** At the end of the bar. */
  readonly text: string;
  readonly peer?: boolean;
  /** The part of the value that is waiting for messages. A bar whose part was not recorded is hatched. */
  readonly waiting?: number | "not recorded" | undefined;
  /** The smallest and largest of the values whose median it is. */
  readonly range?: readonly [least: number, most: number] | undefined;
}

export interface Panel {
  readonly title: string;
  readonly bars: readonly Bar[];
}

export interface Panels {
  readonly title: string;
  /** Legend: our colour, its lighter shade, the colour of peers. */
  readonly own: string;
  readonly waiting: string;
  readonly peer: string;
  /** Legend of the lighter shade of peers, which is drawn if any peer reports its waiting time, and of hatched bars. */
  readonly peerWaiting?: string;
  readonly notRecorded?: string;
  readonly panels: readonly Panel[];
}

const [width, left, right, row, gap] = [860, 250, 90, 22, 36];

/** Between the two shades of peers, because any part of the bar may be waiting. */
const hatched = `<defs><pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="peer" width="3" height="6"/><rect class="peer-waiting" x="3" width="3" height="6"/></pattern><style>.hatched{fill:url(#hatched)}</style></defs>`;

/** The picture; undefined where there is no bar. */
export function panels({
  title,
  own,
  waiting,
  peer,
  peerWaiting = "",
  notRecorded = "",
  panels,
}: Panels): string | undefined {
  if (panels.every(({ bars }) => bars.length === 0)) return undefined;
  let y = 62;
  const peers = panels.flatMap(({ bars }) => bars.filter(({ peer }) => peer));
  const isHatched = (bar: Bar) => bar.waiting === "not recorded";
  const swatches = [
    [own, swatch("own")],
    [waiting, swatch("own-waiting")],
    [peer, swatch("peer")],
    ...(peers.some((bar) => typeof bar.waiting === "number") ? [[peerWaiting, swatch("peer-waiting")] as const] : []),
    ...(peers.some(isHatched) ? [[notRecorded, swatch("hatched")] as const] : []),
  ] as const;
  const parts: string[] = [...(peers.some(isHatched) ? [hatched] : []), legend(swatches, 16, 46)];
  for (const { title: heading, bars } of panels) {
    parts.push(`<text x="${left}" y="${y + 16}" font-weight="600">${heading}</text>`);
    y += 24;
    parts.push(panelOf(bars, y));
    y += row * bars.length + gap - row / 2;
  }
  return svg({ width, height: y - 10, title }, parts);
}

/** Bars whose scale is their own. */
function panelOf(bars: readonly Bar[], y: number): string {
  const place = { y: "label", insetTop: 3, insetBottom: 5 };
  const parts = bars.map((bar) => {
    const waiting = typeof bar.waiting === "number" ? bar.waiting : 0;
    const colour = bar.waiting === "not recorded" ? "hatched" : bar.peer ? "peer" : "own";
    return { ...bar, colour, waiting, from: bar.value - waiting, end: Math.max(bar.value, bar.range?.[1] ?? 0) };
  });
  const ranges = parts.flatMap(({ label, range }) => (range ? [{ label, least: range[0], most: range[1] }] : []));
  const marks = [...new Set(parts.map(({ colour }) => colour))].flatMap((colour) => {
    const own = parts.filter((part) => part.colour === colour);
    const waits = own.filter(({ waiting }) => waiting > 0);
    return [
      barX(own, { ...place, x1: 0, x2: "from", className: colour }),
      barX(waits, { ...place, x1: "from", x2: "value", className: `${colour}-waiting` }),
    ];
  });
  return chart(0, y, {
    width,
    height: row * bars.length,
    margin: 0,
    marginLeft: left,
    marginRight: right,
    x: { axis: null, domain: [0, Math.max(...parts.map(({ end }) => end))] },
    y: { domain: bars.map(({ label }) => label), tickSize: 0, tickPadding: 10, label: null, padding: 0 },
    marks: [
      ...marks,
      ruleY(ranges, { y: "label", x1: "least", x2: "most", stroke: "currentColor" }),
      ...["least", "most"].map((x) =>
        tickX(ranges, { ...place, x, insetTop: 7, insetBottom: 9, stroke: "currentColor" }),
      ),
      text(parts, { y: "label", x: "end", text: "text", dx: 6, textAnchor: "start", className: "axis" }),
    ],
  });
}

/** Milliseconds with a unit: "186 ms", "1.25 s". */
export function timeText(milliseconds: number): string {
  if (milliseconds < 10) return `${milliseconds.toFixed(2)} ms`;
  return milliseconds < 1000 ? `${milliseconds.toFixed(0)} ms` : `${(milliseconds / 1000).toFixed(2)} s`;
}
