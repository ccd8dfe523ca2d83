/**
 * CIFAR-10 and CIFAR-100 in their binary form, https://www.cs.toronto.edu/~kriz/cifar.html: each record is a label of
 * one byte (in CIFAR-100 two: coarse and fine) and 3072 pixels, (3, 32, 32) u8.
 */
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { DataError, reasonOf } from "../data-error.ts";
import { hashPages, PositionalFile } from "../positional-file.ts";
import type { ImageSet, Images } from "./images.ts";

const side = 32;
const pixels = side * side;
const checkedFirst = 64; // labels of each file, when it is opened; the others when they are read

/** Names of the files, labels in front of the pixels, and mean and deviation of all training images. */
export const cifarForms = {
  cifar10: {
    classes: 10,
    labelBytes: 1,
    names: "batches.meta.txt",
    training: /^data_batch_\d+\.bin$/,
    validation: /^test_batch\.bin$/,
    mean: [0.4914, 0.4822, 0.4465],
    deviation: [0.247, 0.2435, 0.2616],
  },
  cifar100: {
    classes: 100,
    labelBytes: 2,
    names: "fine_label_names.txt",
    training: /^train\.bin$/,
    validation: /^test\.bin$/,
    mean: [0.5071, 0.4865, 0.4409],
    deviation: [0.2673, 0.2564, 0.2762],
  },
} as const;
export type CifarName = keyof typeof cifarForms;

/** Opens the files of a folder. Fewer than all training files are fine. Throws `DataError`. */
export async function cifar(name: CifarName, folder: string): Promise<ImageSet> {
  const form = cifarForms[name];
  const names = await readdir(folder).catch((error) => {
    throw new DataError(
      `Cannot read the folder ${folder}: ${reasonOf(error)}; ./terse data prepare ${name} fetches the images, and without data.path made images stand in.`,
    );
  });
  const hash = createHash("sha256");
  const open: PositionalFile[] = [];
  const part = async (pattern: RegExp, what: string) => {
    const files = names.filter((file) => pattern.test(file)).sort();
    if (files.length === 0)
      throw new DataError(
        `${folder} has no ${what} images of ${name}, files named like ${example(pattern)}; name the folder of the binary version, which ./terse data prepare ${name} fetches.`,
      );
    const parts: Images[] = [];
    for (const each of files) {
      const file = new PositionalFile(join(folder, each));
      open.push(file);
      await hashPages(hash, file.size, (at, count) => file.read(at, count));
      parts.push(recordsOf(file, form));
    }
    return joined(parts);
  };
  const close = () => {
    for (const file of open) file.close();
  };
  try {
    const [training, validation] = [await part(form.training, "training"), await part(form.validation, "test")];
    const { classes, mean, deviation } = form;
    const classNames = names.includes(form.names) ? namesIn(join(folder, form.names), classes) : {};
    const common = { source: folder, classes, ...classNames, height: side, width: side, mean, deviation };
    return { ...common, training, validation, fingerprint: hash.digest("hex"), close };
  } catch (error) {
    close();
    throw error;
  }
}

/** The names of the classes, one on each line of a file beside the images. */
function namesIn(path: string, classes: number): { classNames?: string[] } {
  const file = new PositionalFile(path);
  const bytes = file.read(0, Math.min(file.size, 1 << 16));
  file.close();
  const classNames = Buffer.from(bytes)
    .toString()
    .split("\n")
    .flatMap((line) => line.trim() || []);
  return classNames.length === classes ? { classNames } : {};
}

/** A name that fits: data_batch_1.bin. */
const example = (pattern: RegExp) => pattern.source.replace("\\d+", "1").replaceAll(/[\^$\\]/g, "");

/** The images of a file, which are read one by one. Throws `DataError`. */
function recordsOf(file: PositionalFile, { classes, labelBytes }: (typeof cifarForms)[CifarName]): Images {
  const { path, size } = file;
  const record = labelBytes + 3 * pixels;
  if (size === 0 || size % record !== 0)
    throw new DataError(
      `${path} has ${size} bytes, which is no multiple of ${record}, the bytes of an image: it is cut short or of another format; fetch it again.`,
    );
  const images: Images = {
    count: size / record,
    label(i) {
      const [label] = file.read(i * record + labelBytes - 1, 1);
      if (label! < classes) return label!;
      throw new DataError(
        `${path}: image ${i} has label ${label}, and the labels of ${classes} classes are 0 to ${classes - 1}; fetch the file again.`,
      );
    },
    read: (i) => interleaved(file.read(i * record + labelBytes, 3 * pixels)),
  };
  for (let i = 0; i < Math.min(checkedFirst, images.count); i++) images.label(i);
  return images;
}

/** Images of several files, one after the other. */
function joined(parts: readonly Images[]): Images {
  const placed = <T>(i: number, use: (part: Images, inside: number) => T): T => {
    let [at, inside] = [0, i];
    for (; inside >= parts[at]!.count; at++) inside -= parts[at]!.count;
    return use(parts[at]!, inside);
  };
  return {
    count: parts.reduce((sum, { count }) => sum + count, 0),
    label: (i) => placed(i, (part, inside) => part.label(inside)),
    read: (i) => placed(i, (part, inside) => part.read(inside)),
  };
}

/** (3, H, W) → (H, W, 3) */
function interleaved(planes: Uint8Array): Uint8Array {
  const image = new Uint8Array(3 * pixels);
  for (let i = 0; i < pixels; i++)
    for (let channel = 0; channel < 3; channel++) image[3 * i + channel] = planes[channel * pixels + i]!;
  return image;
}
