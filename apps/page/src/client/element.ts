/** Makes elements of a page; all text goes in as text. */
type Child = Node | string | undefined;

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string | boolean | undefined> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const node = document.createElement(name);
  setAttributes(node, attributes);
  node.append(...children.filter((child) => child !== undefined));
  return node;
}

export function svg(
  name: string,
  attributes: Record<string, string | boolean | undefined>,
  ...children: Child[]
): Element {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  setAttributes(node, attributes);
  node.append(...children.filter((child) => child !== undefined));
  return node;
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
