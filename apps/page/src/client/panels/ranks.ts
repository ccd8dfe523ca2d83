/** The ranks of the run whose details are shown: own work, waiting, memory, as the last training line says. */
import { colour } from "../colours.ts";
import { element, svg, swatch } from "../element.ts";
import { quantity } from "../quantities.ts";
import { table, tablePlace } from "../table.ts";
import type { Panel, View } from "./panel.ts";

export class Ranks implements Panel {
  readonly card = element("section", { class: "card", "aria-label": "Ranks" });
  readonly #summary = element("p", { class: "about" });
  readonly #table = tablePlace("Ranks");

  constructor() {
    this.card.append(element("h2", {}, "Ranks"), this.#summary, this.#table);
  }

  show({ runs, chosen }: View): void {
    const run = runs[chosen]!;
    const work = run.listOf("ranks/compute_seconds");
    this.card.hidden = work === undefined;
    if (work === undefined) return;
    const waiting = run.listOf("ranks/exposed_seconds") ?? [];
    const memory = run.listOf("ranks/resident_bytes") ?? [];
    const slowest = work.indexOf(Math.max(...work));
    const skew = Math.max(...work) - Math.min(...work);
    const longest = Math.max(...work.map((seconds, rank) => seconds + (waiting[rank] ?? 0)));
    this.#summary.textContent =
      work.length === 1
        ? "The last line of one rank."
        : `Rank ${slowest} is the slowest: its own work takes ${quantity(skew, "s")} more than that of the fastest.`;
    const head = [
      "rank",
      element("td", { class: "bars" }),
      [swatch(colour(0)), "own work"],
      [swatch(colour(1)), "waiting for messages"],
      "memory",
    ];
    const rows = work.map((seconds, rank) => {
      const waits = waiting[rank] ?? 0;
      const [own, more] = [(100 * seconds) / longest, (100 * waits) / longest];
      const bar = svg(
        "svg",
        { class: "bar", "aria-hidden": "true" },
        svg("rect", { width: `${own}%`, height: "100%", fill: colour(0) }),
        svg("rect", { x: `${own}%`, width: `${more}%`, height: "100%", fill: colour(1) }),
      );
      return [
        String(rank),
        element("td", { class: "bars" }, bar),
        quantity(seconds, "s"),
        waiting[rank] === undefined ? "" : quantity(waits, "s"),
        memory[rank] === undefined ? "" : quantity(memory[rank], "B"),
      ];
    });
    this.#table.replaceChildren(table(head, rows));
  }
}
