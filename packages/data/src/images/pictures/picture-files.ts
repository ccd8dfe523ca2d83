/**
 * The files of a folder of pictures, as torchvision's ImageFolder finds them: those of a class, also in folders below
 * its folder and behind links, ordered by their folders' paths and then by their names. A folder that several links
 * lead to is read once. What is not read is listed by name.
 */
import type { Dirent, Stats } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { basename, extname, join, sep } from "node:path";
import { byCodePoint } from "../../by-code-point.ts";
import { DataError, reasonOf, unreadable } from "../../data-error.ts";
import type { LeftOutFile } from "../../files-at.ts";
import { fileGroup, type Inventory, leftOutGroups } from "../../inventory.ts";
import { foldersIn, isFolder, type PictureFolder, pictureFolder } from "./picture-folder.ts";
import { isPictureName, pictureEndings } from "./picture-formats.ts";

export interface PictureFile {
  readonly path: string;
  readonly label: number;
  readonly size: number; // bytes
}

export interface PictureFiles {
  readonly folder: PictureFolder;
  readonly training: readonly PictureFile[];
  readonly heldOut: readonly PictureFile[];
  readonly inventory: Inventory;
}

/** The pictures at a path, by class. Throws `DataError`, also for a class without a picture. */
export async function pictureFiles(path: string): Promise<PictureFiles> {
  const folder = pictureFolder(path);
  const { root, classes, heldOut: { split, folders } = { split: undefined, folders: [] } } = folder;
  const leftOut: LeftOutFile[] = [];
  const training = await picturesIn(root, classes, leftOut);
  let heldOut: PictureFile[] = [];
  for (const each of folders) heldOut = heldOut.concat(await heldOutIn(each, folder, leftOut));
  for (const each of new Set([path, root, ...folders]))
    for (const entry of await entriesIn(each))
      if (!isHidden(entry.name) && !isFolder(each, entry))
        leftOut.push({ path: join(each, entry.name), size: 0, why: "in no folder of a class" });
  for (const { folder: other, why } of folder.leftOut)
    for await (const file of namesBelow(other)) leftOut.push({ path: file, size: 0, why });
  const inventory = {
    training: fileGroup(path, training),
    ...(split && { heldOut: { ...fileGroup(path, heldOut), split } }),
    leftOut: leftOutGroups(path, leftOut),
  };
  return { folder, training, heldOut, inventory };
}

/** The pictures of classes, in the order of their labels. */
async function picturesIn(root: string, names: readonly string[], leftOut: LeftOutFile[]): Promise<PictureFile[]> {
  const pictures: PictureFile[] = [];
  for (const [label, name] of names.entries()) {
    const [before, left] = [pictures.length, leftOut.length];
    for (const { path, status } of await filesBelow(join(root, name))) {
      const why = whyLeftOut(path, status);
      const size = typeof status === "string" ? 0 : status.size;
      if (why === undefined) pictures.push({ path, label, size });
      else leftOut.push({ path, size, why });
    }
    if (pictures.length === before) throw noPicture(join(root, name), leftOut.slice(left));
  }
  return pictures;
}

/** A folder of held-out pictures may lack some classes, but has none that are not trained on. */
async function heldOutIn(
  folder: string,
  { root, classes }: PictureFolder,
  leftOut: LeftOutFile[],
): Promise<PictureFile[]> {
  const names = foldersIn(folder);
  const other = names.find((name) => !classes.includes(name));
  if (other !== undefined)
    throw new DataError(`${folder} has a class ${other}, which ${root} lacks; train on it, or remove it.`);
  const files = await picturesIn(folder, names, leftOut);
  return files.map((file) => ({ ...file, label: classes.indexOf(names[file.label]!) }));
}

/**
 * Why a file is left out; undefined for a picture. `status` is the file's status, or the reason for which there is
 * none.
 */
function whyLeftOut(path: string, status: Stats | string): string | undefined {
  const ending = extname(path);
  if (typeof status === "string") return status;
  if (!isPictureName(path)) return ending === "" ? "no ending" : `${ending} is not read`;
  if (isHidden(basename(path))) return "hidden";
  return status.isFile() ? undefined : "no regular file";
}

function noPicture(folder: string, leftOut: readonly LeftOutFile[]): DataError {
  const reasons = [...new Set(leftOut.map(({ why }) => why))].join(", ");
  return new DataError(
    `${folder} has no picture that can be read (${pictureEndings.join(", ")})${reasons && ` but ${leftOut.length} other files: ${reasons}`}; add some, or remove the folder: each folder beside it is a class.`,
  );
}

const statsAtOnce = 64;

interface Found {
  readonly path: string;
  readonly status: Stats | string; // why it has none
}

/** Every file below a folder. Hidden folders and files are not looked at, but for hidden pictures. */
async function filesBelow(top: string): Promise<Found[]> {
  const realTop = await realOf(top);
  const found: { readonly folder: string; readonly files: Found[] }[] = [];
  const seen = new Set<string>();
  const visit = async (folder: string, real: string): Promise<void> => {
    seen.add(real);
    const files: Found[] = [];
    found.push({ folder, files });
    for (const entry of await statusesIn(folder)) {
      const { path, status } = entry;
      if (typeof status === "string" || !status.isDirectory()) files.push(entry);
      else if (!isHidden(basename(path))) {
        const below = await realOf(path);
        const isAbove = `${realTop}${sep}`.startsWith(`${below}${sep}`);
        if (isAbove) files.push({ path, status: "a link to a folder that it is in" });
        else if (!seen.has(below)) await visit(path, below);
      }
    }
  };
  await visit(top, realTop);
  return found.sort((a, b) => byCodePoint(a.folder, b.folder)).flatMap(({ files }) => files);
}

async function statusesIn(folder: string): Promise<Found[]> {
  const entries = (await entriesIn(folder)).filter(({ name }) => !isHidden(name) || isPictureName(name));
  const found: Found[] = [];
  for (let i = 0; i < entries.length; i += statsAtOnce) {
    const some = entries.slice(i, i + statsAtOnce).map(async ({ name }) => {
      const path = join(folder, name);
      return { path, status: await stat(path).catch((error: unknown) => reasonOfEntry(name, error)) };
    });
    found.push(...(await Promise.all(some)));
  }
  return found;
}

const realOf = (folder: string) =>
  realpath(folder).catch((error) => {
    throw unreadable(folder, error);
  });

/** The paths of the files below a folder that is not read. Links are not followed. */
async function* namesBelow(folder: string): AsyncGenerator<string> {
  for (const entry of await entriesIn(folder)) {
    if (isHidden(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* namesBelow(path);
    else yield path;
  }
}

function reasonOfEntry(name: string, error: unknown): string {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") return reasonOf(error);
  return name.includes("\ufffd") ? "a name that is not UTF-8" : "a link that leads nowhere";
}

const isHidden = (name: string) => name.startsWith(".");

async function entriesIn(folder: string): Promise<Dirent[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.sort((a, b) => byCodePoint(a.name, b.name));
  } catch (error) {
    throw unreadable(folder, error);
  }
}
