/** Pictures of lying bars, in panels with a scale of their own: ours in blue, peers in grey, what is waited for in a lighter shade. */
export interface Bar {
  readonly label: string;
  readonly value: number;
  /** What the bar's end says. */
  readonly text: string;
  readonly peer?: boolean;
  /** How much of the value is waiting for messages. */
  readonly waiting?: number | undefined;
}

export interface Panel {
  readonly title: string;
  readonly bars: readonly Bar[];
}

const [width, left, right, row, gap] = [860, 260, 120, 24, 40];
const colours = { own: ["#0969da", "#a5d6ff"], peer: ["#6e7781", "#d0d7de"] } as const;

export function panels(title: string, all: readonly Panel[]): string {
  let y = 40;
  const parts: string[] = [];
  for (const { title: heading, bars } of all) {
    const most = Math.max(...bars.map(({ value }) => value));
    const length = (value: number) => (value / most) * (width - left - right);
    parts.push(`<text x="${left}" y="${y + 16}" font-weight="600">${heading}</text>`);
    y += 26;
    for (const { label, value, text, peer, waiting = 0 } of bars) {
      const [strong, light] = colours[peer ? "peer" : "own"];
      const working = length(value - waiting);
      parts.push(
        `<text x="${left - 10}" y="${y + 14}" text-anchor="end">${label}</text>` +
          `<rect x="${left}" y="${y + 3}" width="${working.toFixed(1)}" height="14" fill="${strong}"/>` +
          (waiting > 0
            ? `<rect x="${(left + working).toFixed(1)}" y="${y + 3}" width="${length(waiting).toFixed(1)}" height="14" fill="${light}"/>`
            : "") +
          `<text class="axis" x="${(left + length(value) + 6).toFixed(1)}" y="${y + 14}">${text}</text>`,
      );
      y += row;
    }
    y += gap - row / 2;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" font-family="system-ui, sans-serif" font-size="12">
<style>text{fill:#1f2328}.axis{fill:#57606a}</style>
<rect width="${width}" height="${y}" fill="#fff"/>
<text x="16" y="24">${title}</text>
${parts.join("\n")}
</svg>
`;
}

/** Milliseconds as people write them. */
export function timeText(milliseconds: number): string {
  return milliseconds < 10
    ? `${milliseconds.toFixed(2)} ms`
    : milliseconds < 1000
      ? `${milliseconds.toFixed(0)} ms`
      : `${(milliseconds / 1000).toFixed(2)} s`;
}
