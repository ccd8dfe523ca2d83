import { hint } from "./nearest.ts";
import { OptionsError } from "./options-error.ts";

/**
 * The entry of a registry whose name is `name`. Throws `OptionsError` with the nearest name and the list of names if
 * there is none.
 *
 *   choose("optimizer", "lion-cup", { adamw, "lion-cub": lionCub })
 *   → optimizer: unknown name "lion-cup"; did you mean lion-cub? (known: adamw, lion-cub)
 */
export function choose<Entries extends Record<string, unknown>>(
  kind: string,
  name: string,
  entries: Entries,
): Entries[keyof Entries & string] {
  if (typeof name === "string" && Object.hasOwn(entries, name)) return entries[name] as Entries[keyof Entries & string];
  const known = Object.keys(entries);
  const words = typeof name === "string" ? JSON.stringify(name) : String(name);
  throw new OptionsError([`${kind}: unknown name ${words}${hint(String(name), known)}`]);
}
