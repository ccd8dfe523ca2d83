/** Tokens of whole rows, with what transformers' tokenizers do besides: their special tokens, and masks by places. */
import { createHash } from "node:crypto";
import { DataError } from "../data-error.ts";
import { IsolatedTokenizer } from "../tokenizers/isolated-tokenizer.ts";
import { namedJson } from "../tokenizers/named-json.ts";
import { contentOf, idsIn, sizeOf } from "../tokenizers/tokenizer-json.ts";

export interface RowTokenizer extends Pick<IsolatedTokenizer, "encodeWhole" | "decode"> {
  /** SHA-256 of its tokenizer.json. */
  readonly fingerprint: string;
  readonly vocabulary: number;
  /** The tokens that were added to the vocabulary, special ones among them, by their ids. */
  readonly added: ReadonlyMap<number, string>;
  readonly end?: { readonly id: number; readonly content: string } | undefined; // of a text
}

/** Opens a tokenizer by its name or path. `endOfText` is a token of its own choice. Throws `DataError`. */
export async function openRowTokenizer(name: string, named?: string): Promise<RowTokenizer> {
  const { path = name, text, json, end } = await namedJson(name);
  const id = named === undefined ? end() : idsIn(json, [named])[0];
  if (named !== undefined && id === undefined)
    throw new DataError(
      `The end of a text, ${JSON.stringify(named)}, is no token of ${name}; name one of its tokens, or leave it out.`,
    );
  const added = (json.added_tokens ?? []).map(({ content, id }) => [content, id] as const);
  const tokenizer = new IsolatedTokenizer({ path, json: text, added });
  await tokenizer.load();
  return {
    fingerprint: hashOf(text),
    vocabulary: sizeOf(json),
    added: new Map(added.map(([content, id]) => [id, content])),
    end: id === undefined ? undefined : { id, content: contentOf(json, id)! },
    decode: (ids, more) => tokenizer.decode(ids, more),
    encodeWhole: (text, more) => tokenizer.encodeWhole(text, more),
  };
}

/** The `fingerprint` of a tokenizer that is not opened. Throws `DataError`. */
export const fingerprintOfTokenizer = async (name: string): Promise<string> => hashOf((await namedJson(name)).text);

const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");
