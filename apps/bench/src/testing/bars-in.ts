import { parseHTML } from "linkedom";

/** The bars of a picture: the class of each, where it begins, and how long it is. */
export function barsIn(svg: string): (readonly [name: string, x: number, width: number])[] {
  const groups = [...parseHTML(svg).document.querySelectorAll('[aria-label="bar"]')];
  return groups.flatMap((group) =>
    [...group.querySelectorAll("rect")].map((bar) => {
      const number = (name: string) => Number(bar.getAttribute(name));
      return [bar.closest("[class]").getAttribute("class"), number("x"), number("width")] as const;
    }),
  );
}
