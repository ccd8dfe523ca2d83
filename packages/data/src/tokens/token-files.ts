/** The files of tokens of a folder: those with "val" in their name are held out, all others are trained on. */
import { readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { DataError, reasonOf } from "../data-error.ts";
import { fingerprintOf, openTokenFile, type TokenFile } from "./token-file.ts";
import { part, readChecked, type TokenSource } from "./token-source.ts";

interface Options {
  readonly path: string;
  readonly vocabulary: number; // tokens are below it
  /** Of the last training file, where no file is held out. */
  readonly validationFraction: number;
}

export interface TokenFiles {
  readonly training: readonly TokenSource[]; // one or more
  readonly validation: readonly TokenSource[];
  readonly fingerprint: string; // of the files and of how they are split
}

const checkedFirst = 1 << 16; // tokens of each file

/** Whether `path` is a .bin file, or a folder with one. */
export async function hasTokenFiles(path: string): Promise<boolean> {
  if (path.endsWith(".bin")) return true;
  const names = await readdir(path).catch(() => []); // no folder
  return names.some((name) => name.endsWith(".bin"));
}

/** Throws `DataError`. */
export async function openTokenFiles({ path, vocabulary, validationFraction }: Options): Promise<TokenFiles> {
  const names = await binFiles(path);
  const held = names.length === 1 ? [] : names.filter((name) => /val/i.test(basename(name)));
  const files: TokenFile[] = [];
  try {
    for (const name of names) files.push(openTokenFile(name));
    const training: TokenSource[] = files.filter(({ name }) => !held.includes(name));
    const validation: TokenSource[] = files.filter(({ name }) => held.includes(name));
    if (training.length === 0)
      throw new DataError(`${path} has only held-out files (val in their name); add the files to train on.`);
    if (validation.length === 0 && validationFraction > 0) {
      const last = training.pop()!;
      const cut = last.length - Math.floor(last.length * validationFraction);
      training.push(part(last, 0, cut));
      validation.push(part(last, cut, last.length));
    }
    // A wrong vocabulary nearly always shows in the first tokens: say so before the first step.
    for (const file of files) await readChecked(file, 0, Math.min(checkedFirst, file.length), vocabulary);
    const fraction = held.length > 0 ? 0 : validationFraction;
    return { training, validation, fingerprint: await fingerprintOf(files, `tokens ${held.length} ${fraction} `) };
  } catch (error) {
    for (const file of files) await file.close();
    throw error;
  }
}

/** A file, or the .bin files of a folder in the order of their names. */
async function binFiles(path: string): Promise<string[]> {
  try {
    if ((await stat(path)).isFile()) return [path];
    const names = (await readdir(path)).filter((name) => name.endsWith(".bin") && !name.startsWith("."));
    if (names.length > 0) return names.sort().map((name) => join(path, name));
  } catch (error) {
    throw new DataError(`Cannot read ${path}: ${reasonOf(error)}; check data.path.`);
  }
  throw new DataError(`${path} has no .bin file; ./terse data prepare writes some from texts.`);
}
