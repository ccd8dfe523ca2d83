/**
 * What a run keeps of the folder from which it was initialised, for exports of its model: how to generate, and the
 * tokenizer. The folder may be gone by then.
 *
 *   RUN/initial-files/generation_config.json, tokenizer.json, special_tokens_map.json, …
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  atomicWrite,
  CheckpointError,
  cannot,
  fileInside,
  makeFolder,
  mayExist,
  openRegular,
  writeAll,
} from "@terse/checkpoint";

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
export async function keepInitialFiles(
  from: string,
  run: string,
  { tokenizer }: { tokenizer: boolean },
): Promise<string[]> {
  const names = [...ofModel, ...(tokenizer ? ofTokenizer : [])].filter((name) => mayExist(join(from, name)));
  const lost: string[] = [];
  for (const name of names)
    try {
      await copyFiles(from, join(run, initialFiles), [name]);
    } catch (error) {
      if (!(error instanceof CheckpointError)) throw error;
      lost.push(`exports of this run will be without ${name}: ${error.message}`);
    }
  return lost;
}

const copiedAtOnce = 1 << 22;

/**
 * Copies files of a folder, none of which may lead out of it, each completely or not at all. Throws `CheckpointError`,
 * or the reason of `signal`.
 */
export async function copyFiles(
  from: string,
  to: string,
  names: readonly string[],
  signal?: AbortSignal,
): Promise<void> {
  const files = names.map((name) => [name, fileInside(from, name)] as const); // first all of them
  makeFolder(to);
  for (const [name, path] of files) {
    if (/\.(json|txt|jinja)$/.test(name) && statSync(path).size > mostBytes)
      throw new CheckpointError(
        `${join(from, name)} has more than ${mostBytes} bytes, which no such file needs; replace or remove it.`,
      );
    await using source = await openRegular(path).catch((error: unknown) => {
      throw cannot("read", join(from, name), error);
    });
    const buffer = new Uint8Array(copiedAtOnce);
    await atomicWrite(join(to, name), async (file) => {
      for (;;) {
        signal?.throwIfAborted();
        const { bytesRead } = await source.read(buffer, 0, buffer.length);
        if (bytesRead === 0) return;
        await writeAll(file, buffer.subarray(0, bytesRead));
      }
    });
  }
}

/** The names of the files that a run has kept of its initial weights. */
export const keptIn = (run: string): string[] => {
  const folder = join(run, initialFiles);
  const known: readonly string[] = [...ofModel, ...ofTokenizer];
  return mayExist(folder) ? readdirSync(folder).filter((name) => known.includes(name)) : [];
};
