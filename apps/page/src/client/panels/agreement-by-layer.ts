/** How the vote of one run stands for standard Lion, layer by layer (the Lion Cub paper's Table 2). */
import { colour, named } from "../colours.ts";
import { breakable, element, svg, swatch } from "../element.ts";
import { quantity } from "../quantities.ts";
import type { RunData } from "../run-data.ts";
import { table, tablePlace } from "../table.ts";
import type { Panel, View } from "./panel.ts";

const parts = [
  { key: "match", label: "match", colour: 2 },
  { key: "flip", label: "flip", colour: 1 },
  { key: "ties", label: "ties", colour: 7 },
] as const;

const about = "Elements whose vote with one bit has the sign of standard Lion's update, has the opposite one, or ties.";

interface Row {
  readonly name: string;
  readonly shares: readonly number[]; // of match, flip and ties; the rest is zeros
}

/** The model, and then its layers that are voted on. */
function rowsOf(run: RunData): Row[] {
  const names = run.namedOf("layers/match");
  if (names === undefined) return [];
  const whole = parts.map(({ key }) => run.lastOf(`update/${key}`) ?? 0);
  const layers = parts.map(({ key }) => run.namedOf(`layers/${key}`));
  return [
    { name: "the model", shares: whole },
    ...[...names.keys()].map((name) => ({ name, shares: layers.map((layer) => layer?.get(name) ?? 0) })),
  ];
}

export class AgreementByLayer implements Panel {
  readonly card = element("section", { class: "card", "aria-label": "Agreement by layer" });
  readonly #about = element("p", { class: "about" });
  readonly #table = tablePlace("Agreement by layer");

  constructor() {
    this.card.append(element("h2", {}, "Agreement by layer"), this.#about, this.#table);
  }

  show({ runs, chosen }: View): void {
    const run = runs[chosen]!;
    const rows = rowsOf(run);
    this.card.hidden = rows.length === 0;
    if (rows.length === 0) return;
    const chance = run.lastOf("votes/chance_ties") ?? 0;
    const ofChance =
      chance > 0
        ? `Votes that have nothing in common tie with ${quantity(chance, "share")} of them: the line.`
        : "An odd number of votes does not tie, unless some are 0.";
    this.#about.textContent = `${about} ${ofChance}`;
    this.#table.replaceChildren(
      table(
        ["layer", ...parts.map((part) => [swatch(colour(part.colour)), part.label])],
        rows.map(({ name, shares }) => [
          [...breakable(name), bar(shares, chance)],
          ...shares.map((share) => quantity(share, "share")),
        ]),
        { class: "by-layer" },
      ),
    );
  }
}

/**
 * Matches and flips begin at the left, ties end at the right, and zeros are the gap. The line is the chance of ties.
 */
function bar([match, flip, ties]: readonly number[], chance: number): Element {
  const rects = [
    { from: 0, share: match!, of: parts[0] },
    { from: match!, share: flip!, of: parts[1] },
    { from: 1 - ties!, share: ties!, of: parts[2] },
  ].map(({ from, share, of }) =>
    svg("rect", { x: `${100 * from}%`, width: `${100 * share}%`, height: "100%", fill: colour(of.colour) }),
  );
  const at = `${100 * (1 - chance)}%`;
  const line = svg("line", { x1: at, x2: at, y1: "0", y2: "100%", stroke: named("text"), "stroke-width": "2" });
  return svg("svg", { class: "bar", "aria-hidden": "true" }, ...rects, ...(chance > 0 ? [line] : []));
}
