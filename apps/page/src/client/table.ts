import { type Child, element } from "./element.ts";

/** What a cell has; a cell that is given as such stays as it is. */
type Content = Child | readonly Child[];

/** A table with headings above its columns. The first cell of each row is the heading of the row. */
export function table(
  head: readonly Content[],
  rows: readonly (readonly Content[])[],
  attributes: { readonly class?: string } = {},
): HTMLElement {
  return element(
    "table",
    attributes,
    element("thead", {}, element("tr", {}, ...head.map((content) => cell("th", content, "col")))),
    element(
      "tbody",
      {},
      ...rows.map(([name, ...values]) =>
        element("tr", {}, cell("th", name, "row"), ...values.map((content) => cell("td", content))),
      ),
    ),
  );
}

function cell(name: "th" | "td", content: Content, scope?: "col" | "row"): HTMLTableCellElement {
  return content instanceof HTMLTableCellElement ? content : element(name, { scope }, ...[content].flat());
}

/** The place of a table that may be wider than its card. */
export const tablePlace = (title: string, ...children: Child[]): HTMLElement =>
  element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}: table` }, ...children);
