/** What was found at a data path: the files to train on, those held out by their names, those left out, and why. */
import { basename, relative, sep } from "node:path";

/** A set of files, with only what a line about them needs: a dataset may have millions. */
export interface FileGroup {
  readonly count: number;
  readonly bytes: number;
  /** The first ones, below the data path. */
  readonly names: readonly string[];
  /** The first endings, in the order in which they occur: ".jsonl.gz", ".txt". */
  readonly endings: readonly string[];
}

/** The files at a data path: to train on, held out, and left out. */
export interface Inventory {
  readonly training: FileGroup;
  /**
   * Files held out by their names, and their split. Absent where a share of the training files is held out, or nothing.
   */
  readonly heldOut?: FileGroup & { readonly split: "validation" | "test" };
  readonly leftOut: readonly (FileGroup & { readonly why: string })[];
  /** Other things that were left out, a few words each: "12 rows of train.tsv with too few columns". */
  readonly passedOver?: readonly string[];
}

const most = 3;

/** Sizes count where they are known. */
export function fileGroup(
  root: string,
  files: readonly { readonly path: string; readonly size?: number }[],
): FileGroup {
  const endings = new Set<string>();
  for (let i = 0; i < files.length && endings.size < most; i++) endings.add(endingOf(files[i]!.path));
  return {
    count: files.length,
    bytes: files.reduce((sum, { size = 0 }) => sum + size, 0),
    names: files.slice(0, most).map(({ path }) => relative(root, path).replaceAll(sep, "/") || basename(path)),
    endings: [...endings].filter((ending) => ending !== ""),
  };
}

/** Files that are left out, grouped by the reason. */
export function leftOutGroups(
  root: string,
  files: readonly { readonly path: string; readonly size?: number; readonly why: string }[],
): Inventory["leftOut"] {
  return [...Map.groupBy(files, ({ why }) => why)].map(([why, group]) => ({ ...fileGroup(root, group), why }));
}

/** With other things that were left out, a few words each, where there are any. */
export const withPassedOver = (inventory: Inventory, passedOver: readonly string[]): Inventory => ({
  ...inventory,
  ...(passedOver.length > 0 && { passedOver }),
});

/** The ending of a name, with that of a compression behind it. */
const endingOf = (path: string) =>
  /(?<=[^.])(\.\w{1,12})?(\.(gz|zst|bz2|xz|lz4|zip))?$/i.exec(basename(path))?.[0] ?? "";
