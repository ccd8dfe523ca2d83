/** Methods of texts as Python has them, where JavaScript's differ. */

/** str.isspace() of a letter. */
function isBlank(letter: string): boolean {
  const code = letter.codePointAt(0)!;
  if (code === 0xfeff) return false; // \s takes it, and not those of the next line
  return /\s/.test(letter) || (code >= 0x1c && code <= 0x1f) || code === 0x85;
}

/** str.strip, lstrip and rstrip: without any of `letters` at the ends; without blanks where none are given. */
export function strip(text: string, where: "strip" | "lstrip" | "rstrip", letters?: string): string {
  const all = [...text];
  const goes = (letter: string) => (letters === undefined ? isBlank(letter) : [...letters].includes(letter));
  let [from, to] = [0, all.length];
  if (where !== "rstrip") while (from < to && goes(all[from]!)) from++;
  if (where !== "lstrip") while (to > from && goes(all[to - 1]!)) to--;
  return all.slice(from, to).join("");
}

/** str.capitalize */
export function capitalize(text: string): string {
  const [first = "", ...others] = text;
  return first.toUpperCase() + others.join("").toLowerCase();
}
