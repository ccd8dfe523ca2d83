import { existsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** Files of a tokenizer in other forms than tokenizer.json. */
export const otherTokenizers = [
  "vocab.json",
  "vocab.txt",
  "tokenizer.model",
  "spiece.model",
  "sentencepiece.bpe.model",
] as const;

/** Why the tokenizer in such a file of a folder is not read, and what to do. */
export const inOtherForm = (folder: string, file: string): string =>
  `${folder} has its tokenizer in ${file}, and no tokenizer.json, which alone is read; transformers writes it: ${writeTokenizerCommand(folder)}`;

/** `inOtherForm` of a path that names such a file, or an absent tokenizer.json beside one; undefined for another. */
export function whyInOtherForm(path: string): string | undefined {
  const [folder, name] = [resolve(dirname(path)), basename(path)];
  const json = join(folder, "tokenizer.json");
  const isNamed = otherTokenizers.some((each) => each === name);
  if (existsSync(json)) return isNamed ? `${path} is in another form; name ${json}, which is read` : undefined;
  if (!isNamed && name !== "tokenizer.json") return undefined;
  const file = [name, ...otherTokenizers].find((each) => existsSync(join(folder, each)));
  return file === undefined ? undefined : inOtherForm(folder, file);
}

/** The command by which transformers writes the tokenizer.json of a folder, as a shell takes it. */
export function writeTokenizerCommand(folder: string): string {
  const text = JSON.stringify(folder).replaceAll("'", "\\u0027"); // a quote would end the shell's word
  return `python -c 'from transformers import AutoTokenizer as T; f = ${text}; T.from_pretrained(f).save_pretrained(f)'`;
}
