/**
 * Pictures with horizontal bars, in panels with a scale each: ours in blue, peers in grey, waiting times in a lighter
 * shade.
 */
import { legend, svg, swatch } from "./svg.ts";

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

/** Undefined where there is no bar. */
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
    const most = Math.max(...bars.map(({ value, range }) => Math.max(value, range?.[1] ?? 0)));
    const length = (value: number) => (value / most) * (width - left - right);
    const at = (value: number) => (left + length(value)).toFixed(1);
    parts.push(`<text x="${left}" y="${y + 16}" font-weight="600">${heading}</text>`);
    y += 24;
    for (const bar of bars) {
      const { label, value, text, peer, range } = bar;
      const colour = isHatched(bar) ? "hatched" : peer ? "peer" : "own";
      const waiting = typeof bar.waiting === "number" ? bar.waiting : 0;
      const end = Math.max(value, range?.[1] ?? 0);
      parts.push(
        `<text x="${left - 10}" y="${y + 14}" text-anchor="end">${label}</text>` +
          `<rect class="${colour}" x="${left}" y="${y + 3}" width="${length(value - waiting).toFixed(1)}" height="14"/>` +
          (waiting > 0
            ? `<rect class="${colour}-waiting" x="${at(value - waiting)}" y="${y + 3}" width="${length(waiting).toFixed(1)}" height="14"/>`
            : "") +
          (range
            ? `<path class="range" d="M${at(range[0])} ${y + 10}H${at(range[1])}m0 -3v6M${at(range[0])} ${y + 7}v6"/>`
            : "") +
          `<text class="axis" x="${(left + length(end) + 6).toFixed(1)}" y="${y + 14}">${text}</text>`,
      );
      y += row;
    }
    y += gap - row / 2;
  }
  return svg({ width, height: y - 10, title }, parts);
}

/** Milliseconds with a unit: "186 ms", "1.25 s". */
export function timeText(milliseconds: number): string {
  if (milliseconds < 10) return `${milliseconds.toFixed(2)} ms`;
  return milliseconds < 1000 ? `${milliseconds.toFixed(0)} ms` : `${(milliseconds / 1000).toFixed(2)} s`;
}
