/**
 * What a run keeps of the folder from which it was initialised, for exports of its model: how to generate, and the
 * tokenizer. The folder may be gone by then.
 *
 *   RUN/initial-files/generation_config.json, tokenizer.json, special_tokens_map.json, …
 */
import { copyFileSync, existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { CheckpointError, cannot, fileInside, makeFolder } from "@terse/checkpoint";

export const initialFiles = "initial-files";

/**
 * What transformers writes and reads beside config.json and the weights: of any model, of tokenizers, of image
 * processors.
 */
export const ofModel = ["generation_config.json"] as const;
export const ofTokenizer = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "added_tokens.json",
  "vocab.json",
  "merges.txt",
  "vocab.txt",
  "chat_template.jinja",
] as const;
export const ofImages = ["preprocessor_config.json"] as const;

const mostBytes = 1 << 28; // the largest tokenizer.json that is known has 2²⁵

/** Says which files it could not keep, a line each: a run needs none of them. */
export function keepInitialFiles(from: string, run: string, { tokenizer }: { tokenizer: boolean }): string[] {
  const names = [...ofModel, ...(tokenizer ? ofTokenizer : [])].filter((name) => existsSync(join(from, name)));
  return names.flatMap((name) => {
    try {
      copyFiles(from, join(run, initialFiles), [name]);
      return [];
    } catch (error) {
      if (!(error instanceof CheckpointError)) throw error;
      return [`exports of this run will be without ${name}: ${error.message}`];
    }
  });
}

/** Copies files of a folder, none of which may lead out of it. Throws `CheckpointError`. */
export function copyFiles(from: string, to: string, names: readonly string[]): void {
  const files = names.map((name) => [name, fileInside(from, name)] as const); // first all of them
  makeFolder(to);
  for (const [name, path] of files) {
    if (/\.(json|txt|jinja)$/.test(name) && statSync(path).size > mostBytes)
      throw new CheckpointError(
        `${join(from, name)} has more than ${mostBytes} bytes, which no such file needs; replace or remove it.`,
      );
    try {
      copyFileSync(path, join(to, name));
    } catch (error) {
      throw cannot("write", join(to, name), error);
    }
  }
}

/** The names of the files that a run has kept of its initial weights. */
export const keptIn = (run: string): string[] => {
  const folder = join(run, initialFiles);
  const known: readonly string[] = [...ofModel, ...ofTokenizer];
  return existsSync(folder) ? readdirSync(folder).filter((name) => known.includes(name)) : [];
};
