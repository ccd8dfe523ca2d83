/**
 * Refuses what is no object of options, and an option that a function does not have, which would be left out in
 * silence. TypeScript sees both; a program in JavaScript learns of them here. Throws TypeError.
 */
export function checkOptions(where: string, given: unknown, takes: readonly string[]): void {
  if (given === undefined) return;
  if (typeof given !== "object" || given === null || Array.isArray(given) || ArrayBuffer.isView(given))
    throw new TypeError(`${where}: options are an object, as in { ${takes[0]}: … }, and this is ${described(given)}`);
  for (const name in given) {
    if (takes.includes(name) || given[name as keyof typeof given] === undefined) continue;
    const meant = takes.find((each) => plain(each) === plain(name));
    throw new TypeError(
      `${where}: there is no option ${name}${meant === undefined ? "" : `; did you mean ${meant}?`} (known: ${takes.join(", ")})`,
    );
  }
}

const plain = (name: string): string => name.toLowerCase().replaceAll("_", "");

function described(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return typeof value === "object" && value !== null ? "an array" : String(value);
}
