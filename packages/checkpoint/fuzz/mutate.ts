/** Damages the JSON of a file in ways that chance and malice have: bytes, numbers, tokens, pieces of another file. */

/** A generator of 32-bit numbers (Marsaglia, Xorshift RNGs, 2003): the same for the same seed. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) || 1;
  }

  /** 0 … n − 1 */
  below(n: number): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return (x >>> 0) % n;
  }

  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}

/** What takes the place of a number: ends of ranges, and what is no size. */
const numbers = [
  "0", "1", "-1", "-0", "2", "7", "8", "0.5", "1e3", "255", "4294967296", "9007199254740991", "9007199254740992", "-9007199254740993",
  "18446744073709551615", "1e308", "1e999", "NaN", "null", "true", '"8"', "[]", "{}", "[0]", "00", "1_0",
]; // biome-ignore format: a list

/** What takes the place of a token, or comes before it. */
const tokens = [
  "{", "}", "[", "]", ":", ",", '"', "\\", '""', '"\\u0000"', '"\\ud800"', '"__metadata__"', '"__proto__"', '"constructor"', '"dtype"', '"shape"',
  '"data_offsets"', '"F32"', '"BF16"', '"F4"', '"BOOL"', '"f32"', '"weight_map"', '"files"', '"name"', '"../a.safetensors"', '"a\\u002fb"', "null",
  "\ufeff", "\u0000", "🦁", " ", "\n", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", '{"a":'.repeat(40),
]; // biome-ignore format: a list

const number = /(?<=[[,:])-?\d+/g;
const token = /"(?:[^"\\]|\\.)*"|-?[\d.]+(?:e\d+)?|[{}[\],:]|\w+/g;

type Damage = (text: string, random: Random, others: readonly string[]) => string;

/** One token replaced by what `by` gives for it. */
const atToken =
  (by: (found: string, random: Random) => string): Damage =>
  (text, random) => {
    const from = random.below(text.length + 1);
    token.lastIndex = from;
    const found = token.exec(text);
    if (!found) return text;
    return text.slice(0, found.index) + by(found[0], random) + text.slice(found.index + found[0].length);
  };

const numberChanged: Damage = (text, random) => {
  number.lastIndex = random.below(text.length + 1);
  const match = number.exec(text);
  if (!match) return text;
  const { 0: found, index } = match;
  const by = random.below(3) ? random.of(numbers) : String(Number(found) + random.below(9) - 4);
  return text.slice(0, index) + by + text.slice(index + found.length);
};

const damages: readonly Damage[] = [
  (text, random) => {
    const at = random.below(text.length + 1);
    return text.slice(0, at) + String.fromCharCode(random.below(128)) + text.slice(at + 1);
  },
  (text, random) => text.slice(0, random.below(text.length + 1)),
  (text, random) => {
    const [at, other] = [random.below(text.length + 1), random.below(text.length + 1)];
    const [begin, end] = [Math.min(at, other), Math.max(at, other)];
    return random.below(2) ? text.slice(0, begin) + text.slice(end) : text.slice(0, end) + text.slice(begin);
  },
  (text, random, others) => {
    const other = random.of(others);
    const [at, from] = [random.below(text.length + 1), random.below(other.length + 1)];
    return text.slice(0, at) + other.slice(from, from + random.below(64)) + text.slice(at);
  },
  numberChanged,
  atToken((_, random) => random.of(tokens)),
  atToken((found, random) => random.of(tokens) + found),
  atToken(() => ""),
  atToken((found) => found + found),
];

/** Most of what these make is still JSON, and gets past the first check. */
const lies: readonly Damage[] = [
  numberChanged,
  atToken((found, random) => (found.startsWith('"') ? random.of(strings) : found)),
];
const strings = tokens.filter((text) => text.startsWith('"') && text.length > 1);

/** A text with one to four damages. */
export function damaged(text: string, random: Random, others: readonly string[]): string {
  let now = text;
  const kinds = random.below(2) ? lies : damages;
  for (let left = 1 + random.below(4); left > 0; left--) now = random.of(kinds)(now, random, others);
  return now.length > 1 << 16 ? now.slice(0, 1 << 16) : now;
}
