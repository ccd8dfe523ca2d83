/**
 * JSON as Python reads it. An integer is a bigint with all its digits, and a number is a float, also where it is whole
 * (22.0): JavaScript's own JSON.parse makes one kind of both. An inner object with a key such as "10" is a Map, because
 * JavaScript's objects have such keys first and in their order as numbers. NaN and Infinity, which Python writes, are
 * read though they are no JSON.
 */
export function exactJson(json: string): unknown {
  const read = (text: string) => (/"\d+"\s*:/.test(text) ? parsedWithOrder(text) : revived(text, number));
  return withNaN(json, notANumber, read);
}

/** JSON as JavaScript reads it, but for Infinity, and for NaN, which is null: a number that is missing. */
export const plainJson = (json: string): unknown => withNaN(json, "null", JSON.parse);

/** What `read` makes of a text that may have NaN, Infinity and -Infinity, for which it is given numbers or `nan`. */
function withNaN(json: string, nan: string, read: (text: string) => unknown): unknown {
  try {
    return read(json);
  } catch (error) {
    const numberFor = (_: string, sign?: string) => (sign === undefined ? nan : `${sign}1e999`);
    const numbered = partsOf(json).map((part, i) => (i % 2 === 1 ? part : part.replaceAll(names, numberFor)));
    try {
      return read(numbered.join(""));
    } catch {
      throw error;
    }
  }
}

/** Objects keep the order of keys that are no numbers: each is read with a letter in front. */
function parsedWithOrder(json: string): unknown {
  const parts = partsOf(json);
  const lettered = parts.map((part, i) => (i % 2 === 1 && /^\s*:/.test(parts[i + 1]!) ? `"k${part.slice(1)}` : part));
  return revived(lettered.join(""), (key, value, context) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return number(key, value, context);
    const entries = Object.entries(value).map(([key, each]): [string, unknown] => [key.slice(1), each]);
    return key !== "" && entries.some(([key]) => /^\d+$/.test(key)) ? new Map(entries) : Object.fromEntries(entries);
  });
}

const names = /(?<![\w.+-])(?:NaN|(-?)Infinity)(?![\w.])/g;
const notANumber = "0e-999999"; // as nobody writes 0

/** What is outside of strings, a string with its quotes, and so on in turn; the last is outside. */
function partsOf(json: string): string[] {
  const parts: string[] = [];
  let end = 0;
  for (let begin = json.indexOf('"'); begin >= 0; begin = json.indexOf('"', end)) {
    parts.push(json.slice(end, begin));
    end = begin + 1;
    do end = json.indexOf('"', end) + 1;
    while (end > 0 && isEscaped(json, end - 1));
    if (end === 0) end = json.length; // the string has no end
    parts.push(json.slice(begin, end));
  }
  return [...parts, json.slice(end)];
}

function isEscaped(json: string, at: number): boolean {
  let slash = at;
  while (json[slash - 1] === "\\") slash--;
  return (at - slash) % 2 === 1;
}

/** Node 22 and later tell a reviver how a number is written. */
type Reviver = (key: string, value: unknown, context: { readonly source: string }) => unknown;
const revived = (json: string, reviver: Reviver): unknown =>
  JSON.parse(json, reviver as (key: string, value: unknown) => unknown);

const number: Reviver = (_, value, { source }) => {
  if (typeof value !== "number") return value;
  return source === notANumber ? Number.NaN : /^-?\d+$/.test(source) ? BigInt(source) : value;
};
