/** A tokenizer.json of Hugging Face's tokenizers as a file: reads its vocabulary, and finds what is wrong with it. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { DataError } from "../data-error.ts";
import { jsonFile, jsonIfThere } from "./json-file.ts";
import { whyInOtherForm, writeTokenizerCommand } from "./write-tokenizer.ts";

export interface TokenizerJson {
  readonly model: {
    readonly vocab: Readonly<Record<string, number>> | readonly (readonly [string, number])[];
    readonly dropout?: number | null;
    readonly [more: string]: unknown;
  };
  readonly added_tokens?: readonly { readonly id: number; readonly content: string; readonly special?: boolean }[];
  readonly [more: string]: unknown;
}

const mostId = 2 ** 31 - 1;
const isId = (id: unknown) => Number.isInteger(id) && (id as number) >= 0 && (id as number) <= mostId;
const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** Reads a tokenizer.json. Throws `DataError` where it is none. */
export const readTokenizerJson = (path: string): TokenizerJson => readTokenizerFile(path).json;

/** Reads a tokenizer.json, and gives its text too. Throws `DataError` where it is none. */
export function readTokenizerFile(path: string): { text: string; json: TokenizerJson } {
  const other = whyInOtherForm(path);
  if (other !== undefined) throw new DataError(`${other}.`);
  if (!existsSync(path))
    throw new DataError(
      `Cannot read the tokenizer ${path}: it does not exist; data.tokenizer is bytes, gpt2, or the path of a tokenizer.json, as a fast tokenizer's save_pretrained() writes it.`,
    );
  const { text, json } = jsonFile(path);
  const wrong = problemOf(json);
  if (wrong !== undefined)
    throw new DataError(`${path} is no tokenizer.json: ${wrong}; save one with a fast tokenizer's save_pretrained().`);
  const { dropout } = (json as TokenizerJson).model;
  if (dropout)
    throw new DataError(
      `${path} leaves out merges at random (model.dropout is ${dropout}), so ranks would read different tokens; set model.dropout to null in it.`,
    );
  checkTokensBeside(path, json as TokenizerJson);
  return { text, json: json as TokenizerJson };
}

/**
 * transformers also reads the tokens that the files beside it list, and gives ids to those that tokenizer.json lacks.
 * Here they would be read as their letters.
 */
function checkTokensBeside(path: string, json: TokenizerJson): void {
  for (const name of ["tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"]) {
    const file = join(dirname(path), name);
    const content = listedIn(name, jsonIfThere(file)).find((each) => idsIn(json, [each])[0] === undefined);
    if (content === undefined) continue;
    throw new DataError(
      `${file} has the token ${shown(content)}, and the tokenizer.json beside it lacks it; transformers writes it there: ${writeTokenizerCommand(dirname(path))}.`,
    );
  }
}

/** The tokens in the lists of a file beside a tokenizer.json. */
function listedIn(name: string, file: unknown): string[] {
  if (!isObject(file)) return [];
  if (name === "added_tokens.json") return Object.keys(file);
  const lists = [file["added_tokens_decoder"], file["additional_special_tokens"], file["extra_special_tokens"]];
  const tokens = lists.filter(isObject).flatMap((list): unknown[] => Object.values(list));
  const contents = tokens.map((token) => (isObject(token) ? token["content"] : token));
  return contents.filter((content) => typeof content === "string");
}

/** What is wrong with the parts that are read here; the library checks the others. */
function problemOf(json: unknown): string | undefined {
  const vocab = isObject(json) && isObject(json.model) ? json.model.vocab : undefined;
  if (!isObject(vocab)) return "it has no model with a vocabulary";
  if (Array.isArray(vocab)) {
    const at = vocab.findIndex((each) => !Array.isArray(each) || typeof each[0] !== "string");
    if (at >= 0) return `entry ${at} of its vocabulary is ${shown(vocab[at])}, and no token with its score`;
  } else {
    const names = new Map<unknown, string>();
    for (const [token, id] of Object.entries(vocab)) {
      if (!isId(id)) return `the id of ${shown(token)} is ${shown(id)}, and no integer from 0 to ${mostId}`;
      const other = names.get(id);
      if (other !== undefined) return `${shown(other)} and ${shown(token)} both have the id ${id}`;
      names.set(id, token);
    }
  }
  const added = (json as { added_tokens?: unknown }).added_tokens ?? [];
  if (!Array.isArray(added)) return "its added_tokens are no list";
  const at = added.findIndex((each) => !isObject(each) || typeof each.content !== "string" || !isId(each.id));
  return at < 0 ? undefined : `entry ${at} of its added_tokens is ${shown(added[at])}, which has no content and id`;
}

const shown = (value: unknown) => (JSON.stringify(value) ?? "nothing").slice(0, 60);

/** The largest id plus one, over the model's tokens and the added ones. */
export function sizeOf({ model: { vocab }, added_tokens = [] }: TokenizerJson): number {
  let size = Array.isArray(vocab) ? vocab.length : 0; // a list is in the order of ids
  if (!Array.isArray(vocab))
    for (const id of Object.values(vocab as Record<string, number>)) size = Math.max(size, id + 1);
  for (const { id } of added_tokens) size = Math.max(size, id + 1);
  return size;
}

/** The ids of these tokens, of the vocabulary or added; undefined for one that is absent. */
export function idsIn(
  { model, added_tokens = [] }: TokenizerJson,
  contents: readonly string[],
): (number | undefined)[] {
  const vocab = model.vocab as Readonly<Record<string, number>>;
  return contents.map((content) => {
    const added = added_tokens.find((token) => token.content === content);
    if (added) return added.id;
    if (!Array.isArray(model.vocab)) return Object.hasOwn(vocab, content) ? vocab[content] : undefined;
    const place = model.vocab.findIndex(([piece]) => piece === content);
    return place < 0 ? undefined : place;
  });
}

/** The token of an id; undefined for none. */
export function contentOf({ model: { vocab }, added_tokens = [] }: TokenizerJson, id: number): string | undefined {
  const added = added_tokens.find((token) => token.id === id);
  if (added) return added.content;
  if (Array.isArray(vocab)) return vocab[id]?.[0];
  return Object.entries(vocab as Record<string, number>).find(([, each]) => each === id)?.[0];
}
