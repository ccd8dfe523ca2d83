import { bytesJson } from "./byte-level-json.ts";
import { endOfText } from "./end-of-text.ts";
import { gpt2EndOfText, gpt2Json } from "./gpt2-tokenizer.ts";
import { readTokenizerFile, type TokenizerJson } from "./tokenizer-json.ts";
import { fileOf } from "./tokenizers.ts";

export interface NamedJson {
  readonly path: string | undefined; // of the file
  readonly text: string;
  readonly json: TokenizerJson;
  /** The id of the token that ends a text. Throws `DataError`. */
  end(): number | undefined;
}

/** The tokenizer.json of "bytes", of "gpt2", or at the path of a file or its folder. Throws `DataError`. */
export async function namedJson(name: string): Promise<NamedJson> {
  if (name === "bytes") return made(bytesJson(), undefined);
  if (name === "gpt2") return made(await gpt2Json(), gpt2EndOfText);
  const path = fileOf(name);
  const file = readTokenizerFile(path);
  return { path, ...file, end: () => endOfText(path, file.json) };
}

const made = (json: TokenizerJson, end: number | undefined): NamedJson => ({
  path: undefined,
  text: JSON.stringify(json),
  json,
  end: () => end,
});
