/**
 * A folder of pictures with a folder for each class, as torchvision's ImageFolder: PATH/train/cat/1.jpg and PATH/val/cat/2.png, or
 * PATH/cat/1.jpg, of which a fraction is held out. Classes are numbered in the order of their names. A picture is decoded when it is needed.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { DataError, reasonOf } from "../data-error.ts";
import type { SampleOptions } from "../dataset.ts";
import { evenlySpread } from "../evenly-spread.ts";
import { byCodeUnit } from "../files-at.ts";
import { permuted } from "../permutation.ts";
import { CorruptImage, type ImageSet, type Images, tooManyCorrupt } from "./images.ts";

export interface ImageFolderOptions {
  readonly path: string;
  readonly classes: number;
  /** Height and width. */
  readonly size: number;
  /** Scale pictures, so that the shorter side has `size` pixels, and cut out the middle; else other sizes are refused. */
  readonly resize: boolean;
  /** Of a folder without train/ and val/. */
  readonly validationFraction: number;
  /** The largest share of all pictures that may be impossible to decode. */
  readonly maxCorrupt: number;
}

type Share = Pick<SampleOptions, "rank" | "ranks" | "progress">;

interface File {
  readonly path: string; // below the folder
  readonly label: number;
}

const decodedFirst = 64; // pictures of each part
const atOnce = 16; // in libuv's threads
const progressMs = 10_000;

const picture = /\.(jpe?g|png)$/i;

/** The mean and deviation of ImageNet's pixels, which torchvision's weights expect. */
export const imageNetForm = { mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225] } as const;

/** Before the first step the header of every picture is read, by the rank whose share it is. Throws `DataError`. */
export async function imageFolder(options: ImageFolderOptions, share: Share = {}): Promise<ImageSet> {
  const { path, classes, size, validationFraction } = options;
  const split = existsSync(join(path, "train"));
  const root = split ? join(path, "train") : path;
  const names = await classesIn(root);
  if (names.length === 0)
    throw new DataError(
      `${root} has no folder with pictures: put those of each class into a folder of its own, ${join(path, "CLASS")}/… or ${join(path, "train/CLASS")}/… and ${join(path, "val/CLASS")}/….`,
    );
  if (names.length !== classes)
    throw new DataError(
      `${root} has folders of ${names.length} classes, and data.classes is ${classes}; set data.classes to ${names.length}.`,
    );
  const all = await filesIn(root, names);
  const held = split ? await heldOut(path, names) : [];
  const cut = split ? all.length : all.length - Math.floor(all.length * validationFraction);
  // Which of them are held out depends on nothing but their number.
  const order = split ? all : all.map((_, i) => all[permuted(i, all.length, 0, 0)]!);
  const [training, validation] = [order.slice(0, cut), [...order.slice(cut), ...held]];
  if (training.length === 0)
    throw new DataError(`${root} has no picture (.jpg, .jpeg, .png) in the folders of its classes.`);
  const hash = createHash("sha256").update(`${size} ${options.resize} ${cut} ${names.join("/")}`);
  const files = [...training, ...validation];
  for (const file of files)
    hash.update(`${relative(path, file.path).replaceAll(sep, "/")} ${(await stat(file.path)).size}\n`);
  for (const i of evenlySpread(decodedFirst, files.length)) hash.update(await endOf(files[i]!.path));
  const images = (files: readonly File[]): Images => ({
    count: files.length,
    label: (i) => files[i]!.label,
    read: (i) => decode(files[i]!.path, options),
  });
  const some = [training, validation].flatMap((part) => evenlySpread(decodedFirst, part.length).map((i) => part[i]!));
  const corrupt = new Map<string, string>(); // each path, and why
  await check(some, (file) => decode(file.path, options), corrupt);
  const { rank = 0, ranks = 1, progress } = share;
  const mine = files.filter((_, i) => i % ranks === rank);
  await check(mine, (file) => checkHeader(file.path, options), corrupt, progress);
  if (corrupt.size > options.maxCorrupt * files.length)
    throw tooManyCorrupt(path, corrupt.size, files.length, [...corrupt.values()].sort().at(-1)!);
  return {
    source: path,
    classes,
    height: size,
    width: size,
    ...imageNetForm,
    fingerprint: hash.digest("hex"),
    training: images(training),
    validation: images(validation),
  };
}

/** Looks at pictures, several at once, and adds those that cannot be read to `corrupt`. Throws `DataError`. */
async function check(
  files: readonly File[],
  look: (file: File) => Promise<unknown>,
  corrupt: Map<string, string>,
  progress?: Share["progress"],
): Promise<void> {
  let [next, told] = [0, performance.now()];
  let wrong: { at: number; error: unknown } | undefined; // of the first file that ends the check, whichever is looked at first
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
        if (error instanceof CorruptImage)
          corrupt.set(file.path, error.message); // counted again when its turn comes
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

/** Reads as much of a picture as its size needs: a third of a millisecond for a JPEG. Throws `CorruptImage`, and `DataError` for another size. */
async function checkHeader(path: string, { size, resize }: ImageFolderOptions): Promise<void> {
  const { default: sharp } = await import("sharp");
  const { autoOrient } = await sharp(path)
    .metadata()
    .catch((error: Error) => {
      throw corruptImage(path, error);
    });
  if (!resize) checkSize(path, autoOrient, size);
}

const corruptImage = (path: string, error: unknown) =>
  new CorruptImage(`${path} (${(error as Error).message.split("\n")[0]})`);

function checkSize(path: string, { width, height }: { width: number; height: number }, size: number): void {
  if (width === size && height === size) return;
  throw new DataError(
    `${path} has ${width} × ${height} pixels, and data.size is ${size}; set data.resize to true, which scales and crops every picture.`,
  );
}

/** The pixels of a file, (H, W, 3) u8. Transparent pixels are laid on black. */
async function decode(path: string, { size, resize }: ImageFolderOptions): Promise<Uint8Array> {
  const { default: sharp } = await import("sharp"); // only folders of pictures need it
  let result: { data: Buffer; info: { width: number; height: number } };
  try {
    const decoded = sharp(path, { failOn: "error" }).autoOrient().flatten().toColourspace("srgb");
    const scaled = resize ? decoded.resize(size, size, { fit: "cover", kernel: "linear" }) : decoded;
    result = await scaled.removeAlpha().raw({ depth: "uchar" }).toBuffer({ resolveWithObject: true });
  } catch (error) {
    throw corruptImage(path, error);
  }
  const { data, info } = result;
  checkSize(path, info, size);
  return new Uint8Array(data.buffer, data.byteOffset, data.length);
}

const visible = (name: string) => !name.startsWith(".");

async function classesIn(root: string): Promise<string[]> {
  try {
    const entries = await readdir(root, { withFileTypes: true });
    return entries
      .filter((entry) => !entry.isFile() && visible(entry.name))
      .map(({ name }) => name)
      .sort(byCodeUnit);
  } catch (error) {
    throw new DataError(`Cannot read the folder ${root}: ${reasonOf(error)}; data.path has a folder for each class.`);
  }
}

async function filesIn(root: string, names: readonly string[]): Promise<File[]> {
  const files: File[] = [];
  for (const [label, name] of names.entries())
    for (const file of (await readdir(join(root, name)))
      .filter((file) => visible(file) && picture.test(file))
      .sort(byCodeUnit))
      files.push({ path: join(root, name, file), label });
  return files;
}

async function heldOut(path: string, names: readonly string[]): Promise<File[]> {
  const folder = ["val", "test"].map((name) => join(path, name)).find((name) => existsSync(name));
  if (folder === undefined) return [];
  const other = (await classesIn(folder)).find((name) => !names.includes(name));
  if (other !== undefined)
    throw new DataError(
      `${folder} has a class ${other}, which ${join(path, "train")} lacks; train on it, or remove it.`,
    );
  return filesIn(
    folder,
    names.filter((name) => existsSync(join(folder, name))),
  ).then((files) => files.map((file) => ({ ...file, label: names.indexOf(file.path.split(/[/\\]/).at(-2)!) })));
}

/** The last 64 bytes of a file. Only some files are opened for the fingerprint: of a million, each open would be a wait for the disk. */
async function endOf(path: string): Promise<Uint8Array> {
  await using file = await open(path, "r");
  const { size } = await file.stat();
  const end = new Uint8Array(Math.min(64, size));
  await file.read(end, 0, end.length, size - end.length);
  return end;
}
