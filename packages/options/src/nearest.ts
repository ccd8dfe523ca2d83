/**
 * The unrestricted Damerau-Levenshtein distance: an insertion, deletion, substitution or transposition of neighbours
 * costs 1, and a transposed pair may be edited again. Lowrance and Wagner 1975, "An extension of the string-to-string
 * correction problem".
 */
export function editDistance(a: string, b: string): number {
  const from = [...a];
  const to = [...b];
  const never = from.length + to.length;
  // Row and column 0 are a sentinel border for transpositions that would start before the words.
  const d = Array.from({ length: from.length + 2 }, () => new Array<number>(to.length + 2).fill(never));
  for (let i = 0; i <= from.length; i++) d[i + 1]![1] = i;
  for (let j = 0; j <= to.length; j++) d[1]![j + 1] = j;

  const lastRowOf = new Map<string, number>(); // for each letter, its last row in `from`
  for (let i = 1; i <= from.length; i++) {
    let lastMatch = 0; // the last column of this row whose letter is the same
    for (let j = 1; j <= to.length; j++) {
      const row = lastRowOf.get(to[j - 1]!) ?? 0;
      const column = lastMatch;
      const same = from[i - 1] === to[j - 1];
      if (same) lastMatch = j;
      d[i + 1]![j + 1] = Math.min(
        d[i]![j]! + (same ? 0 : 1), // keep or substitute
        d[i + 1]![j]! + 1, // insert
        d[i]![j + 1]! + 1, // delete
        d[row]![column]! + (i - row - 1) + 1 + (j - column - 1), // transpose
      );
    }
    lastRowOf.set(from[i - 1]!, i);
  }
  return d[from.length + 1]![to.length + 1]!;
}

// weight_decay, weight-decay and weightDecay are the same word in different spellings.
export const normalised = (word: string): string => word.toLowerCase().replace(/[-_ .]/g, "");

/** Our keys by the names that other programs give them. */
const synonyms: ReadonlyMap<string, string> = new Map([
  ["learningrate", "lr"],
  ["epochs", "steps"],
  ...["ranks", "workers", "processes", "worldsize", "np", "nproc", "ngpus", "numprocesses"].map(
    (word) => [word, "nproc-per-node"] as const,
  ),
]);

/** The key that users mean by another word: lr for learning_rate. The word itself where none is known. */
export const ownWord = (word: string): string => synonyms.get(normalised(word)) ?? word;

/** "startPowerSGDIter" → start, power, sgd, iter */
const partsOf = (word: string) =>
  word
    .replace(/([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, "$1$3 $2")
    .toLowerCase()
    .split(/[-_ .]+/);

/**
 * Whether all parts of the shorter word are parts of the longer one, in order: rank of matrixApproximationRank,
 * adjustLr of adjustLrFn.
 */
function isPartOf(a: string, b: string): boolean {
  const [few, many] = [partsOf(a), partsOf(b)].sort((one, other) => one.length - other.length) as [string[], string[]];
  let next = 0;
  for (const part of many) {
    const wanted = few[next]!;
    if (wanted === undefined) break;
    if (Math.min(part.length, wanted.length) >= 3 && (part.startsWith(wanted) || wanted.startsWith(part))) next++;
  }
  return next === few.length;
}

/**
 * The word of `known` that is most similar to `word`, or its synonym; the first of several, or undefined if none is
 * similar.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (known.includes(ownWord(word))) return ownWord(word);
  const wanted = normalised(word);
  if (wanted === "") return undefined;
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const have = normalised(candidate);
    const distance = editDistance(wanted, have);
    // At most a third of the letters may differ, so that short names do not match everything.
    const near = distance <= Math.floor(Math.max(wanted.length, have.length) / 3);
    const isPrefix = wanted.length >= 3 && (have.startsWith(wanted) || wanted.startsWith(have)) && have.length >= 3;
    if ((near || isPrefix || isPartOf(word, candidate)) && distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** `; did you mean beta1? (known: beta1, beta2)`, or only the list if no known word is similar. */
export function hint(word: string, known: readonly string[]): string {
  const meant = nearest(word, known);
  const list = known.length > 0 ? `(known: ${known.join(", ")})` : "(no names are known)";
  return meant === undefined ? ` ${list}` : `; did you mean ${meant}? ${list}`;
}
