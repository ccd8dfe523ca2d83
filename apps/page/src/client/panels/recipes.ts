/** The recipes, key by key; of several runs first the keys in which they differ. */
import { breakable, element } from "../element.ts";
import { table, tablePlace } from "../table.ts";
import type { Panel, View } from "./panel.ts";

export class Recipes implements Panel {
  readonly card = element("section", { class: "card wide", "aria-label": "Recipe" });
  #shown = "";

  show({ runs }: View): void {
    const recipes = runs.map(({ recipe }) => new Map(flat(recipe ?? {})));
    const keys = [...new Set(recipes.flatMap((recipe) => [...recipe.keys()]))];
    this.card.hidden = keys.length === 0;
    const shown = JSON.stringify([runs.map(({ name }) => name), recipes.map((recipe) => [...recipe])]);
    if (keys.length === 0 || shown === this.#shown) return; // a table that is open stays open
    this.#shown = shown;
    const differ = keys.filter((key) => new Set(recipes.map((recipe) => recipe.get(key))).size > 1);
    const tableOf = (some: readonly string[]) => {
      const rows = some.map((key) => [
        breakable(key),
        ...recipes.map((recipe) => element("td", { class: "text" }, recipe.get(key) ?? "–")),
      ]);
      return tablePlace("Recipe", table(["key", ...runs.map(({ name }) => name)], rows, { class: "recipe" }));
    };
    this.card.replaceChildren(
      element("h2", {}, runs.length > 1 ? "Recipes" : "Recipe"),
      ...(runs.length > 1
        ? [
            element("p", { class: "about" }, differ.length > 0 ? "Where they differ:" : "They are the same."),
            ...(differ.length > 0 ? [tableOf(differ)] : []),
          ]
        : []),
      element("details", {}, element("summary", {}, `All ${keys.length} keys`), tableOf(keys)),
    );
  }
}

function flat(value: unknown, path = ""): [string, string][] {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return [[path, typeof value === "string" ? value : JSON.stringify(value)]];
  return Object.entries(value).flatMap(([key, each]) => flat(each, path === "" ? key : `${path}.${key}`));
}
