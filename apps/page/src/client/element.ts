/** Makes elements of a page; all text goes in as text. */
type Child = Node | string | undefined;

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string | boolean | undefined> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  setAttributes(made, attributes);
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

export function svg(
  name: string,
  attributes: Record<string, string | boolean | undefined>,
  ...children: Child[]
): Element {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  setAttributes(made, attributes);
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

/** A swatch: a rectangle, or a line with its dashes. */
export function swatch(colour: string, dashes: readonly number[] = [], isLine = false): Element {
  const mark = isLine
    ? svg("line", {
        x1: "0",
        y1: "5",
        x2: "18",
        y2: "5",
        stroke: colour,
        "stroke-width": "3",
        "stroke-dasharray": dashes.join(" "),
      })
    : svg("rect", { width: "11", height: "10", rx: "2", fill: colour });
  return svg("svg", { class: "swatch", width: isLine ? "18" : "11", height: "10", "aria-hidden": "true" }, mark);
}

function setAttributes(of: Element, attributes: Record<string, string | boolean | undefined>): void {
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined && value !== false) of.setAttribute(key, value === true ? "" : value);
}
