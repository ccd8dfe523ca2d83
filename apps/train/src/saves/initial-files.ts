/**
 * What a run keeps of the folder from which it was initialised, and of its tokenizer's: how to generate, and the
 * tokenizer. Either folder may be gone when the run goes on, or its model is sampled or exported.
 *
 *   RUN/initial-files/generation_config.json, tokenizer.json, special_tokens_map.json, …
 */
import { readdirSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
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
const tokenizerFile = "tokenizer.json";
export const ofTokenizer = [
  tokenizerFile,
  "tokenizer_config.json",
  "special_tokens_map.json",
  "added_tokens.json",
  "vocab.json",
  "merges.txt",
  "vocab.txt",
  "chat_template.jinja",
] as const;
export const ofImages = ["preprocessor_config.json"] as const;
/** What is read of a tokenizer beside tokenizer.json. */
const besideTokenizer = ["tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"];

const mostBytes = 1 << 28; // the largest tokenizer.json that is known has 2²⁵

/** Says which files it could not keep, a line each: a run needs none of them. */
export async function keepInitialFiles(
  from: string,
  run: string,
  { tokenizer }: { tokenizer: boolean },
): Promise<string[]> {
  return keepAll(from, run, [...ofModel, ...(tokenizer ? ofTokenizer : [])]);
}

/**
 * The same of the tokenizer that a run's data names, and has opened. One that every installation has, such as gpt2, is
 * not kept.
 */
export async function keepTokenizer(name: string | undefined, run: string): Promise<string[]> {
  if (name === undefined || !isAbsolute(name)) return [];
  const isFolder = mayExist(join(name, tokenizerFile));
  const path = isFolder ? join(name, tokenizerFile) : name; // a link is followed: it leads to a tokenizer
  const lost = await tried(tokenizerFile, () => keep(realpathSync(path), run, tokenizerFile));
  return [...lost, ...(await keepAll(dirname(path), run, besideTokenizer))];
}

/** Keeps those of these files that there are. */
async function keepAll(from: string, run: string, names: readonly string[]): Promise<string[]> {
  const lost: string[] = [];
  for (const name of names.filter((name) => mayExist(join(from, name))))
    lost.push(...(await tried(name, () => keep(fileInside(from, name), run, name))));
  return lost;
}

async function keep(path: string, run: string, name: string): Promise<void> {
  makeFolder(join(run, initialFiles));
  await copyFile(path, join(run, initialFiles, name));
}

async function tried(name: string, keep: () => Promise<void>): Promise<string[]> {
  try {
    await keep();
    return [];
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
    return [`this run keeps no ${name}, and its exports may lack it: ${error.message}`];
  }
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
  for (const [name, path] of files) await copyFile(path, join(to, name), signal);
}

async function copyFile(from: string, to: string, signal?: AbortSignal): Promise<void> {
  if (/\.(json|txt|jinja)$/.test(to) && statSync(from).size > mostBytes)
    throw new CheckpointError(
      `${from} has more than ${mostBytes} bytes, which no such file needs; replace or remove it.`,
    );
  await using source = await openRegular(from).catch((error: unknown) => {
    throw cannot("read", from, error);
  });
  const buffer = new Uint8Array(copiedAtOnce);
  await atomicWrite(to, async (file) => {
    for (;;) {
      signal?.throwIfAborted();
      const { bytesRead } = await source.read(buffer, 0, buffer.length);
      if (bytesRead === 0) return;
      await writeAll(file, buffer.subarray(0, bytesRead));
    }
  });
}

/** The names of the files that a run has kept of its initial weights. */
export const keptIn = (run: string): string[] => {
  const folder = join(run, initialFiles);
  const known: readonly string[] = [...ofModel, ...ofTokenizer];
  return mayExist(folder) ? readdirSync(folder).filter((name) => known.includes(name)) : [];
};
