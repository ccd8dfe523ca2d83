/**
 * The classes of a folder of pictures, and its parts: PATH/train/CLASS/… with PATH/val/CLASS/… beside it, or
 * PATH/CLASS/…. Folders are read synchronously: a model's head has as many rows as there are classes, and is made
 * before the data is opened.
 */
import { type Dirent, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { byCodePoint } from "../../by-code-point.ts";
import { DataError, reasonOf } from "../../data-error.ts";
import { partsBySplit, type Split, splitOfName } from "../../split-names.ts";

export interface PictureFolder {
  /** The folder with the folders of the training pictures' classes. */
  readonly root: string;
  readonly classes: readonly string[]; // in the order of their numbers
  /** The folders of held-out pictures by name, each with class folders. undefined where PATH itself has the classes. */
  readonly heldOut:
    | { readonly split: "validation" | "test" | undefined; readonly folders: readonly string[] }
    | undefined;
  /** Other folders with the name of a split, and why they are not read. */
  readonly leftOut: readonly { readonly folder: string; readonly why: string }[];
}

/** The folders of classes at a path. Throws `DataError` where there are none. */
export function pictureFolder(path: string): PictureFolder {
  const names = foldersIn(path);
  const training = trainingFolder(path, names);
  if (training === undefined) {
    const splits = new Set(names.map(splitOfName));
    const isSplit = names.length > 0 && !splits.has(undefined);
    const flat = names.find((name) => !hasFolders(join(path, name)));
    if (isSplit && flat === undefined)
      throw new DataError(
        `${path} has ${names.join(", ")} and no folder of training pictures beside; name it ${join(path, "train")}.`,
      );
    if (isSplit && splits.has("training") && splits.size > 1)
      throw new DataError(
        `${path} has ${names.join(", ")}, which are splits by their names and no classes, and ${flat} has no folders in it; put the pictures of each class into a folder of its own, ${join(path, flat!, "CLASS")}/….`,
      );
    if (names.length === 0)
      throw new DataError(
        `${path} has no folder with pictures: put those of each class into a folder of its own, ${join(path, "CLASS")}/… or ${join(path, "train/CLASS")}/… and ${join(path, "val/CLASS")}/….`,
      );
    return { root: path, classes: names, heldOut: undefined, leftOut: [] };
  }
  const root = join(path, training);
  const others = names.filter((name) => name !== training);
  const parts = partsBySplit(
    others.filter((name) => heldOutSplit(name) !== undefined && hasFolders(join(path, name))),
    splitOfName,
  );
  const why = (name: string) =>
    parts.leftOut.includes(name)
      ? "the test split"
      : heldOutSplit(name)
        ? "no folders of classes in it"
        : `beside ${training}/`;
  return {
    root,
    classes: foldersIn(root),
    heldOut: { split: parts.heldOutSplit, folders: parts.heldOut.map((name) => join(path, name)) },
    leftOut: others
      .filter((name) => !parts.heldOut.includes(name))
      .map((name) => ({ folder: join(path, name), why: why(name) })),
  };
}

/**
 * The number of classes of these pictures. Throws `DataError` for a single one: then the folders below it may be the
 * classes.
 */
export function countClasses(path: string): number {
  const { root, classes } = pictureFolder(path);
  if (classes.length > 1) return classes.length;
  throw new DataError(
    `${root} has one folder, ${classes[0]}, and with one class there is nothing to learn; name the folder whose folders are the classes, or set data.classes to 1.`,
  );
}

/**
 * The folder whose folders are the classes of the training pictures: "train", "Training" or "train2017". A name that
 * only contains such a word, as "train_images", counts where all other folders have a word of a split too. A class may
 * be called "train", beside others; then its folder has pictures.
 */
function trainingFolder(path: string, names: readonly string[]): string | undefined {
  const possible = names.filter((name) => splitOfName(name) === "training" && hasFolders(join(path, name)));
  const exact = possible.filter((name) => /^[-._ 0-9]*(train|training)[-._ 0-9]*$/i.test(name));
  const found = exact.length > 0 ? exact : names.every((name) => splitOfName(name) !== undefined) ? possible : [];
  if (found.length <= 1) return found[0];
  throw new DataError(
    `${path} has the folders ${found.join(", ")}, and only one can have the training pictures; put those of a class into one folder.`,
  );
}

const heldOutSplit = (name: string): Exclude<Split, "training"> | undefined => {
  const split = splitOfName(name);
  return split === "training" ? undefined : split;
};

const hasFolders = (folder: string) => foldersIn(folder).length > 0;

/**
 * The names of the folders in a folder, links included, in the order of their code points, as in Python. Hidden ones
 * are skipped.
 */
export function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => !entry.name.startsWith(".") && isFolder(folder, entry))
      .map(({ name }) => name)
      .sort(byCodePoint);
  } catch (error) {
    throw new DataError(
      `Cannot read the folder ${folder}: ${reasonOf(error)}; data.path has a folder for each class, as ImageNet has (https://www.image-net.org/download.php): name yours with --data FOLDER.`,
    );
  }
}

/** Whether an entry is a folder, or a link to one. */
export function isFolder(folder: string, entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  try {
    return statSync(join(folder, entry.name)).isDirectory();
  } catch {
    return false; // a link that leads nowhere
  }
}
