import type { PartOf } from "./model.ts";

/** Which part of which parameter a stored tensor is, by its name in files. */
export function partsByName(
  parameters: Iterable<readonly [name: string, parameter: unknown]>,
  storedAs: (parameter: string) => readonly string[],
): ReadonlyMap<string, PartOf> {
  const found = new Map<string, PartOf>();
  for (const [parameter] of parameters) {
    const names = storedAs(parameter);
    for (const [part, name] of names.entries()) found.set(name, { parameter, part, parts: names.length });
  }
  return found;
}
