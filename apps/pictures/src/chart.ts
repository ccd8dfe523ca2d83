/** A chart by Observable Plot, as a part of a picture: its upper left corner is at (left, top). */
import { type PlotOptions, plot } from "@observablehq/plot";
import { parseHTML } from "linkedom";

/** What is used of the DOM, whose types this project does not have. */
interface Element {
  querySelector(selector: string): { remove(): void } | null;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): void;
  readonly outerHTML: string;
}

const { document } = parseHTML("<html></html>");

/** Coordinates, which a tenth of a pixel says well enough, and which would else be most of a picture's bytes. */
const coordinates = / (?:d|transform|width|height|r|[xy][12]?|c[xy])="[^"]*"/g;

/** The names of axes stand in their middle. */
const named = { labelAnchor: "center", labelArrow: "none" } as const;

export function chart(left: number, top: number, { x, y, ...options }: PlotOptions): string {
  const axes = { x: { ...named, ...x }, y: { ...named, ...y } };
  const svg: Element = plot({ document, className: "chart", ...axes, ...options });
  svg.querySelector("style")?.remove(); // the picture has its own
  svg.setAttribute("x", String(left));
  svg.setAttribute("y", String(top));
  svg.removeAttribute("font-size"); // the picture's
  return svg.outerHTML.replaceAll(coordinates, (found) =>
    found.replaceAll(/\d+\.\d+/g, (number) => String(Number(Number(number).toFixed(1)))),
  );
}

/** Labels of a logarithmic axis: powers of ten, and no other ticks. */
export const powersOfTen =
  (text: (value: number) => string) =>
  (value: number): string =>
    Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9 ? text(value) : "";
