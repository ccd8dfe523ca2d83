/** The distribution of one run's momenta beside a Laplace distribution (the Lion Cub paper's Figure 4). */
import { element } from "../element.ts";
import { table, tablePlace } from "../table.ts";
import type { Panel, View } from "./panel.ts";

const shares = [0.5, 0.9, 0.99, 0.999];
/** The quantiles of |m| / mean |m| in a Laplace distribution: −ln(1 − share). */
const laplace = shares.map((share) => -Math.log(1 - share));

export class Momenta implements Panel {
  readonly card = element("section", { class: "card", "aria-label": "Sizes of momenta" });

  show({ runs, chosen }: View): void {
    const sizes = runs[chosen]!.listOf("momentum/quantiles");
    this.card.hidden = sizes === undefined;
    if (sizes === undefined) return;
    const rows = [
      ["this run", ...sizes.map((size) => size.toPrecision(3))],
      ["Laplace", ...laplace.map((size) => size.toPrecision(3)), ""],
    ];
    const head = ["", ...shares.map((share) => `${100 * share} %`), "largest"];
    this.card.replaceChildren(
      element("h2", {}, "Sizes of momenta"),
      element(
        "p",
        { class: "about" },
        "So many of rank 0's momenta are not larger than this, as a multiple of their mean.",
      ),
      tablePlace("Sizes of momenta", table(head, rows)),
    );
  }
}
