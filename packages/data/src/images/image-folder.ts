/**
 * A folder of pictures with a folder for each class, as torchvision's ImageFolder: PATH/train/cat/1.jpg and
 * PATH/val/cat/2.png, or PATH/cat/1.jpg, of which a fraction is held out. Classes are numbered in the order of their
 * names. A picture is decoded when it is needed.
 */
import { createHash } from "node:crypto";
import { closeSync, readSync } from "node:fs";
import { relative, sep } from "node:path";
import { DataError } from "../data-error.ts";
import type { SampleOptions } from "../dataset.ts";
import { evenlySpread } from "../evenly-spread.ts";
import type { Inventory } from "../inventory.ts";
import { permuted } from "../permutation.ts";
import { openRegular } from "../regular-file.ts";
import { CorruptImage, type ImageSet, type Images, keyOf } from "./images.ts";
import { decodePicture, pictureSize } from "./pictures/picture.ts";
import { type PictureFile, type PictureFiles, pictureFiles } from "./pictures/picture-files.ts";
import type { PictureFolder } from "./pictures/picture-folder.ts";

export interface ImageFolderOptions {
  readonly path: string;
  /** As many as there are folders, if it is given. */
  readonly classes?: number | undefined;
  /** Height and width. */
  readonly size: number;
  /**
   * Whether pictures are scaled so that the shorter side has `size` pixels, and the middle is cut out. Without it,
   * pictures of another size are refused.
   */
  readonly resize: boolean;
  /** The share that is held out of a folder without train/ and val/. */
  readonly validationFraction: number;
  /** Where no folder is held out by its name, all pictures are. */
  readonly holdOutAll?: boolean;
}

type Share = Pick<SampleOptions, "rank" | "ranks" | "progress">;

interface File extends PictureFile {
  readonly key: string;
}

const decodedFirst = 64; // pictures of each part
const atOnce = 16; // in libuv's threads
const progressMs = 10_000;

/** The mean and deviation of ImageNet's pixels, which torchvision's weights expect. */
export const imageNetForm = { mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225] } as const;

/** The files of a folder of pictures. Throws `DataError`, also where `classes` is not their number. */
async function filesOf({ path, classes: given }: Pick<ImageFolderOptions, "path" | "classes">): Promise<PictureFiles> {
  const files = await pictureFiles(path);
  const { root, classes } = files.folder;
  if (given === undefined || given === classes.length) return files;
  throw new DataError(
    `${root} has folders of ${classes.length} classes, and data.classes is ${given}; set data.classes to ${classes.length}, or leave it out.`,
  );
}

export const imageFolderInventory = async (options: Pick<ImageFolderOptions, "path" | "classes">): Promise<Inventory> =>
  (await filesOf(options)).inventory;

/** Reads the header of every picture before the first step; the ranks share the pictures. Throws `DataError`. */
export async function imageFolder(options: ImageFolderOptions, share: Share = {}): Promise<ImageSet> {
  const { path, size, resize, validationFraction, holdOutAll = false } = options;
  const found = await filesOf(options);
  const { root, classes, heldOut } = found.folder;
  const all = found.training;
  const isWhole = holdOutAll && found.heldOut.length === 0;
  const cut = isWhole ? 0 : heldOut ? all.length : all.length - Math.floor(all.length * validationFraction);
  // The choice of the held-out pictures depends on their number alone.
  const order = heldOut ? all : all.map((_, i) => all[permuted(i, all.length, 0, 0)]!);
  const training = order.slice(0, cut).map((file, i) => ({ ...file, key: keyOf("training", i) }));
  const validation = [...order.slice(cut), ...found.heldOut].map((file, i) => ({
    ...file,
    key: keyOf("validation", i),
  }));
  if (training.length === 0 && !isWhole)
    throw new DataError(
      `${root}: data.validationFraction ${validationFraction} holds out all ${all.length} pictures; set a smaller one.`,
    );
  const nameOf = (file: File) => relative(path, file.path).replaceAll(sep, "/");
  const files = [...training, ...validation];
  const hash = createHash("sha256").update(`${size} ${resize} ${cut} ${classes.join("/")}`);
  for (const file of files) hash.update(`${nameOf(file)} ${file.size}\n`);
  for (const i of evenlySpread(decodedFirst, files.length)) hash.update(endOf(files[i]!.path));

  const checkSize = ({ path }: File, { width, height }: { width: number; height: number }) => {
    if (resize || (width === size && height === size)) return;
    throw new DataError(
      `${path} has ${width} × ${height} pixels, and data.size is ${size}; set data.resize to true, which scales and crops every picture.`,
    );
  };
  const decode = (file: File) =>
    named(file, () =>
      decodePicture(file.path, { ...(resize && { side: size }), check: (found) => checkSize(file, found) }),
    );
  const named = async <T>(file: File, look: () => Promise<T>): Promise<T> => {
    try {
      return await look();
    } catch (error) {
      if (!(error instanceof CorruptImage)) throw error;
      throw new CorruptImage(`${nameOf(file)} (${error.message})`, { cause: error });
    }
  };
  const images = (files: readonly File[]): Images => ({
    count: files.length,
    label: (i) => files[i]!.label,
    read: async (i) => (await decode(files[i]!)).data,
  });
  const some = [training, validation].flatMap((part) => evenlySpread(decodedFirst, part.length).map((i) => part[i]!));
  const corrupt = new Map<string, string>(); // by key: the picture, and why
  await check(some, decode, corrupt);
  const { rank = 0, ranks = 1, progress } = share;
  const mine = files.filter((_, i) => i % ranks === rank);
  const checkHeader = (file: File) => named(file, async () => checkSize(file, await pictureSize(file.path)));
  await check(mine, checkHeader, corrupt, progress);
  return {
    source: path,
    classes: classes.length,
    classNames: classes,
    height: size,
    width: size,
    ...imageNetForm,
    fingerprint: hash.digest("hex"),
    training: images(training),
    validation: images(validation),
    corrupt: new Map([...corrupt].sort(([a], [b]) => (a < b ? -1 : 1))),
    inventory: found.inventory,
    remarks: remarksOn(found.folder, isWhole),
  };
}

/** What the user should know of the folder, a line each. */
function remarksOn({ root, classes, heldOut }: PictureFolder, isWhole: boolean): string[] {
  const [some, others] = [classes.slice(0, 5), classes.length - 5];
  return [
    `data.classes: ${classes.length}, ${some.join(", ")}${others > 0 ? ` and ${others} more` : ""}`,
    ...(heldOut?.folders.length === 0 && !isWhole
      ? [`nothing is held out: ${root} has no val, valid, dev or test beside it`]
      : []),
  ];
}

/** Looks at pictures, several at once, and adds those that cannot be read to `corrupt`. Throws `DataError`. */
async function check(
  files: readonly File[],
  look: (file: File) => Promise<unknown>,
  corrupt: Map<string, string>,
  progress?: Share["progress"],
): Promise<void> {
  let [next, told] = [0, performance.now()];
  // The error that ends the check: that of the first such file, in whichever order they are read.
  let wrong: { at: number; error: unknown } | undefined;
  const worker = async () => {
    while (next < files.length) {
      const at = next++;
      const file = files[at]!;
      if (performance.now() - told > progressMs) {
        told = performance.now();
        progress?.(`the headers of ${next} of ${files.length} pictures have been read`);
      }
      try {
        await look(file);
      } catch (error) {
        if (error instanceof CorruptImage) corrupt.set(file.key, error.message);
        else if (wrong === undefined || at < wrong.at) {
          wrong = { at, error };
          next = files.length;
        }
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  if (wrong) throw wrong.error;
}

/**
 * The last 64 bytes of a file, or fewer. Only a sample of the files is opened for the fingerprint: opening a million
 * takes long.
 */
function endOf(path: string): Uint8Array {
  let opened: ReturnType<typeof openRegular>;
  try {
    opened = openRegular(path);
  } catch {
    return new Uint8Array(); // as a picture it is corrupt, and will be named
  }
  const { descriptor, status } = opened;
  const end = new Uint8Array(Math.min(64, status.size));
  try {
    readSync(descriptor, end, 0, end.length, status.size - end.length);
    return end;
  } finally {
    closeSync(descriptor);
  }
}
