/** What to do about an error of the library, which does not say which part of the tokenizer.json caused it. */
const parts: Readonly<Record<string, string>> = {
  Normalizer: "normalizer",
  PreTokenizer: "pre_tokenizer",
  PostProcessor: "post_processor",
  Decoder: "decoder",
  Model: "model",
};

export function remedyFor(reason: string, json: Readonly<Record<string, unknown>>): string {
  const { model, ...others } = json;
  const patterns = valuesOf(others, "Regex");
  if (/^Onig: Regex search error|^it had not ended/.test(reason) && patterns.length > 0)
    return `a regular expression of it may need steps without end: ${shown(patterns)}; write it without nested repetitions`;
  if (reason.includes("SIGKILL")) return "the machine probably had no memory left: free some, or give shorter texts";
  if (reason.startsWith("it needs more than"))
    return "give shorter texts, or check where the file is from: its normalizer or pre_tokenizer may write far more than it reads";
  if (/\bunk(_id|_token)?\b/i.test(reason))
    return "its model has no token for what it does not know: name one of its vocabulary as unk_token (Unigram: unk_id)";
  // The error names the library's own type for the part, such as PreTokenizerWrapper.
  const part = parts[/untagged enum (\w+?)(?:Wrapper|Untagged)\b/.exec(reason)?.[1] ?? ""];
  const types = part === undefined ? [] : valuesOf({ part: json[part] }, "type");
  if (part !== undefined)
    return `its ${part} has ${types.length === 0 ? "no type" : `the types ${shown(types)}`}: one of them, or an option, is unknown here; write tokens with Python's tokenizers, and read those (data.name: tokens)`;
  return "open it with Python's tokenizers, and save it again with a fast tokenizer's save_pretrained()";
}

/** The texts with this key, wherever they are. */
function valuesOf(json: object, key: string): string[] {
  const values: string[] = [];
  const open: unknown[] = [json]; // and not by recursion: a hostile file may be deep
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    if (typeof part !== "object" || part === null) continue;
    const value: unknown = Object.hasOwn(part, key) ? (part as Record<string, unknown>)[key] : undefined;
    if (typeof value === "string") values.push(value);
    for (const inner of Object.values(part)) if (typeof inner === "object") open.push(inner);
  }
  return values;
}

const shown = (texts: readonly string[]) =>
  [...texts.slice(0, 4).map((text) => JSON.stringify(text.slice(0, 200))), ...(texts.length > 4 ? ["…"] : [])].join(
    ", ",
  );
