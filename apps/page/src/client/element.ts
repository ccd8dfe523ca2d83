/** Makes elements of a page; all text goes in as text. */
export type Child = Node | string | undefined;

type Attributes = Readonly<Record<string, string | boolean | undefined>>;

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name: string, attributes: Attributes, ...children: Child[]): Element {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
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

/** A name that may break into lines after its dots and underscores. */
export const breakable = (name: string): Child[] =>
  name.split(/(?<=[._])/).flatMap((part, i) => (i === 0 ? [part] : [element("wbr"), part]));

function filled<E extends Element>(node: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  node.append(...children.filter((child) => child !== undefined));
  return node;
}
