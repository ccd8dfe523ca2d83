/**
 * The token files of a folder. Those that are named as the validation split are held out, or else those of the test
 * split.
 */
import { readdir } from "node:fs/promises";
import { basename } from "node:path";
import { namedPacking } from "../content/packing.ts";
import { DataError } from "../data-error.ts";
import { byCodeUnit, filesAt, type SizedFile } from "../files-at.ts";
import { fileGroup, type Inventory, leftOutGroups } from "../inventory.ts";
import { type Parts, partsBySplit, splitOfName } from "../split-names.ts";
import { fingerprintOf, openTokenFile, type TokenFile } from "./token-file.ts";
import { part, readChecked, type TokenSource } from "./token-source.ts";

interface Options {
  readonly path: string;
  readonly vocabulary: number; // tokens are below it
  /** The share of the last training file that is held out where no file is. */
  readonly validationFraction: number;
  /** Where no file is held out, all are. */
  readonly holdOutAll?: boolean | undefined;
}

export interface TokenFiles {
  readonly training: readonly TokenSource[]; // one or more; none where all are held out
  readonly validation: readonly TokenSource[];
  readonly fingerprint: string; // of the files and of how they are split
  readonly inventory: Inventory;
}

const checkedFirst = 1 << 16; // tokens of each file

/** Whether `path` is a .bin file, or a folder with one. */
export async function hasTokenFiles(path: string): Promise<boolean> {
  if (isBin(path)) return true;
  const names = await readdir(path).catch(() => []); // no folder
  return names.some(isBin);
}

const isBin = (name: string) => /\.bin$/i.test(name) && !name.startsWith(".");

/** The files that `openTokenFiles` opens. Throws `DataError`. */
export const tokenInventory = async (path: string): Promise<Inventory> => (await listed(path)).inventory;

/** Opens the files of tokens at a path. Throws `DataError`. */
export async function openTokenFiles({
  path,
  vocabulary,
  validationFraction,
  holdOutAll,
}: Options): Promise<TokenFiles> {
  const { parts, inventory } = await listed(path);
  const files: TokenFile[] = [];
  try {
    // In the order of their names, on which the fingerprint depends.
    const paths = [...parts.training, ...parts.heldOut].map((file) => file.path).sort(byCodeUnit);
    for (const each of paths) files.push(openTokenFile(each));
    const heldPaths = new Set(parts.heldOut.map((file) => file.path));
    const training: TokenSource[] = files.filter(({ name }) => !heldPaths.has(name));
    const validation: TokenSource[] = files.filter(({ name }) => heldPaths.has(name));
    if (validation.length === 0 && holdOutAll) validation.push(...training.splice(0));
    else if (validation.length === 0 && validationFraction > 0) {
      const last = training.pop()!;
      const cut = last.length - Math.floor(last.length * validationFraction);
      training.push(part(last, 0, cut));
      validation.push(part(last, cut, last.length));
    }
    // A wrong vocabulary nearly always shows in the first tokens: say so before the first step.
    for (const file of files) await readChecked(file, 0, Math.min(checkedFirst, file.length), vocabulary);
    const fraction = heldPaths.size > 0 ? 0 : validationFraction;
    const fingerprint = await fingerprintOf(files, `tokens ${heldPaths.size} ${fraction} `);
    return { training, validation, fingerprint, inventory };
  } catch (error) {
    for (const file of files) await file.close();
    throw error;
  }
}

/** The .bin files of a folder, or the file that the path names, whatever its name is. */
async function listed(path: string): Promise<{ parts: Parts<SizedFile>; inventory: Inventory }> {
  const { isFolder, files, leftOut } = await filesAt(path, { flat: true });
  const bins = isFolder ? files.filter((file) => isBin(file.path)) : files;
  if (bins.length === 0) {
    const packed = files.find((file) => whyNot(file.path) !== noBin);
    throw new DataError(
      packed
        ? `${path} has no .bin file, and ${basename(packed.path)} is ${whyNot(packed.path)}.`
        : `${path} has no .bin file; ./terse data prepare writes some from texts.`,
    );
  }
  const parts = partsBySplit(bins, (file) => (isFolder ? splitOfName(basename(file.path)) : undefined));
  const { training, heldOut, heldOutSplit } = parts;
  if (training.length === 0)
    throw new DataError(
      `${path} has only held-out files (${basename(heldOut[0]!.path)} is one by its name); add the files to train on.`,
    );
  const left = [
    ...leftOut,
    ...files.filter((file) => !bins.includes(file)).map((file) => ({ ...file, why: whyNot(file.path) })),
    ...parts.leftOut.map((file) => ({ ...file, why: "the test split" })),
  ];
  const heldOutGroup = heldOutSplit && { heldOut: { ...fileGroup(path, heldOut), split: heldOutSplit } };
  return {
    parts,
    inventory: { training: fileGroup(path, training), ...heldOutGroup, leftOut: leftOutGroups(path, left) },
  };
}

const noBin = "no .bin file";

/** Why a file is not read as tokens, which are read where they are. */
function whyNot(path: string): string {
  const packing = namedPacking(path);
  return packing && isBin(basename(path.slice(0, path.lastIndexOf("."))))
    ? `packed by ${packing.name}, and tokens are read where they are: unpack it with ${packing.program}`
    : noBin;
}
