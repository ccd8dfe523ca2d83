/**
 * A folder of pictures with a folder for each class, as torchvision's ImageFolder: PATH/train/cat/1.jpg and PATH/val/cat/2.png, or
 * PATH/cat/1.jpg, of which a fraction is held out. Classes are numbered in the order of their names. A picture is decoded when it is needed.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { DataError, reasonOf } from "../data-error.ts";
import { permuted } from "../permutation.ts";
import { byCodeUnit } from "../text/text-bytes.ts";
import { evenStarts } from "../windows.ts";
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

interface File {
  readonly path: string; // below the folder
  readonly label: number;
}

const checkedFirst = 64; // pictures of each part

const picture = /\.(jpe?g|png)$/i;

/** The mean and deviation of ImageNet's pixels, which torchvision's weights expect. */
const [mean, deviation] = [[0.485, 0.456, 0.406] as const, [0.229, 0.224, 0.225] as const];

/** Throws `DataError`. */
export async function imageFolder(options: ImageFolderOptions): Promise<ImageSet> {
  const { path, classes, size, validationFraction } = options;
  const split = existsSync(join(path, "train"));
  const root = split ? join(path, "train") : path;
  const names = await classesIn(root);
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
  for (const i of evenStarts(checkedFirst, 1, files.length)) hash.update(await endOf(files[i]!.path));
  const images = (files: readonly File[]): Images => ({
    count: files.length,
    label: (i) => files[i]!.label,
    read: (i) => decode(files[i]!.path, options),
  });
  const corrupt = [...(await corruptOfSome(images(training))), ...(await corruptOfSome(images(validation)))];
  if (corrupt.length > options.maxCorrupt * files.length)
    throw tooManyCorrupt(path, corrupt.length, files.length, corrupt.at(-1)!);
  return {
    source: path,
    classes,
    height: size,
    width: size,
    mean,
    deviation,
    fingerprint: hash.digest("hex"),
    training: images(training),
    validation: images(validation),
  };
}

/**
 * Decodes pictures from all over a part, so that another size and too many corrupt ones are known before the first step. Gives the
 * corrupt ones. Throws `DataError`.
 */
async function corruptOfSome(images: Images): Promise<string[]> {
  const corrupt: string[] = [];
  await Promise.all(
    evenStarts(checkedFirst, 1, images.count).map(async (i) => {
      try {
        await images.read(i);
      } catch (error) {
        if (!(error instanceof CorruptImage)) throw error;
        corrupt.push(error.message); // counted again when its turn comes
      }
    }),
  );
  return corrupt.sort();
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
    throw new CorruptImage(`${path} (${(error as Error).message.split("\n")[0]})`);
  }
  const { data, info } = result;
  if (info.width !== size || info.height !== size)
    throw new DataError(
      `${path} has ${info.width} × ${info.height} pixels, and data.size is ${size}; set data.resize to true, which scales and crops every picture.`,
    );
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
