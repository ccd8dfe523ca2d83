/** Methods of texts as Python has them, where JavaScript's differ. A place is that of a letter, not of a unit of UTF-16. */

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

/** Letters that have a form of their own at the beginning of a title. */
const ofTitles: Readonly<Record<string, string>> = Object.fromEntries(
  ["Ǆǅǆ", "Ǉǈǉ", "Ǌǋǌ", "Ǳǲǳ"].flatMap((forms) => [...forms].map((letter) => [letter, [...forms][1]!])),
);

function titled(letter: string): string {
  const [first = "", ...others] = letter.toUpperCase();
  return ofTitles[letter] ?? first + others.join("").toLowerCase();
}

/** str.capitalize */
export function capitalize(text: string): string {
  const [first = "", ...others] = text;
  return titled(first) + others.join("").toLowerCase();
}

/** str.title: a word begins behind every letter that has no case, such as an apostrophe. Jinja's filter is another. */
export function title(text: string): string {
  let isInside = false;
  return [...text]
    .map((letter) => {
      const written = isInside ? letter.toLowerCase() : titled(letter);
      isInside = /\p{Cased}/u.test(letter);
      return written;
    })
    .join("");
}

/** Words between blanks, at most `most` + 1 of them; the last one has the rest. */
function words(letters: readonly string[], most: number): string[] {
  const found: string[] = [];
  for (let at = 0; ; ) {
    while (at < letters.length && isBlank(letters[at]!)) at++;
    if (at === letters.length) return found;
    if (found.length === most) return [...found, letters.slice(at).join("")];
    let end = at;
    while (end < letters.length && !isBlank(letters[end]!)) end++;
    found.push(letters.slice(at, end).join(""));
    at = end;
  }
}

const backwards = (text: string) => [...text].reverse().join("");

/** str.split and str.rsplit; blanks are between parts where no text is given. */
export function split(text: string, where: "split" | "rsplit", between?: string, most = -1): string[] {
  if (between === "") throw new Error("empty separator");
  if (where === "rsplit") {
    const parts = split(backwards(text), "split", between && backwards(between), most);
    return parts.map(backwards).reverse();
  }
  const limit = most < 0 ? Number.POSITIVE_INFINITY : most;
  if (between === undefined) return words([...text], limit);
  const parts = text.split(between);
  return parts.length <= limit + 1 ? parts : [...parts.slice(0, limit), parts.slice(limit).join(between)];
}

const ends = "\n\r\v\f\u001c\u001d\u001e\u0085\u2028\u2029";
const line = new RegExp(`([^${ends}]*)(\r\n|[${ends}]|$)`, "g");

/** str.splitlines */
export const lines = (text: string, keepEnds = false): string[] =>
  [...text.matchAll(line)].flatMap(([all, words]) => (all === "" ? [] : [keepEnds ? all : words!]));

/** str.partition and str.rpartition */
export function partition(text: string, between: string, at: number, isLast: boolean): [string, string, string] {
  if (at < 0) return isLast ? ["", "", text] : [text, "", ""];
  return [text.slice(0, at), between, text.slice(at + between.length)];
}

/** str.replace: the first `most`, or all. */
export function replace(text: string, old: string, by: string, most = -1): string {
  const parts = old === "" ? ["", ...text, ""] : text.split(old);
  const limit = most < 0 ? parts.length : Math.min(most + 1, parts.length);
  return [parts.slice(0, limit).join(by), ...parts.slice(limit)].join(old);
}

/** str.center, ljust and rjust. */
export function pad(text: string, where: "center" | "ljust" | "rjust", width: number, filler = " "): string {
  const missing = Math.max(0, width - [...text].length);
  const half = Math.floor(missing / 2) + (missing & width & 1);
  const before = where === "center" ? half : where === "rjust" ? missing : 0;
  return filler.repeat(before) + text + filler.repeat(missing - before);
}

/** str.zfill */
export function zfill(text: string, width: number): string {
  const [, sign = "", digits = ""] = /^([+-]?)(.*)$/s.exec(text)!;
  return sign + "0".repeat(Math.max(0, width - [...text].length)) + digits;
}

/** Digits that are no decimal ones, such as ². */
const otherDigits =
  "\u00b2\u00b3\u00b9\u1369-\u1371\u19da\u2070\u2074-\u2079\u2080-\u2089\u2460-\u2468\u2474-\u247c\u2488-\u2490\u24ea\u24f5-\u24fd\u24ff\u2776-\u277e\u2780-\u2788\u278a-\u2792\u{10a40}-\u{10a43}\u{10e60}-\u{10e68}\u{11052}-\u{1105a}\u{1f100}-\u{1f10a}";

/** The methods that ask whether all letters are of a kind. */
export const kinds: Readonly<Record<string, (text: string) => boolean>> = {
  isdecimal: (text) => /^\p{Nd}+$/u.test(text),
  isdigit: (text) => new RegExp(`^[\\p{Nd}${otherDigits}]+$`, "u").test(text),
  isalpha: (text) => /^\p{L}+$/u.test(text),
  isalnum: (text) => /^[\p{L}\p{N}]+$/u.test(text),
  isspace: (text) => text !== "" && [...text].every(isBlank),
  isupper: (text) => /[\p{Uppercase}]/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text),
  islower: (text) => /[\p{Lowercase}]/u.test(text) && !/[\p{Uppercase}\p{Lt}]/u.test(text),
};
