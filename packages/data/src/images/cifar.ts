/**
 * CIFAR-10 and CIFAR-100 in their binary form, https://www.cs.toronto.edu/~kriz/cifar.html: records of a label of one byte (CIFAR-100: two,
 * coarse and fine) and 3072 pixels, (3, 32, 32) u8.
 */
import { createHash } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { DataError, reasonOf } from "../data-error.ts";
import { readInto } from "../read-files.ts";
import { type ImageSet, imagesInMemory } from "./images.ts";

const side = 32;
const pixels = side * side;

/** Names of the files, labels in front of the pixels, and mean and deviation of all training images. */
export const cifarForms = {
  cifar10: {
    classes: 10,
    labelBytes: 1,
    training: /^data_batch_\d+\.bin$/,
    validation: /^test_batch\.bin$/,
    mean: [0.4914, 0.4822, 0.4465],
    deviation: [0.247, 0.2435, 0.2616],
  },
  cifar100: {
    classes: 100,
    labelBytes: 2,
    training: /^train\.bin$/,
    validation: /^test\.bin$/,
    mean: [0.5071, 0.4865, 0.4409],
    deviation: [0.2673, 0.2564, 0.2762],
  },
} as const;
export type CifarName = keyof typeof cifarForms;

/** Reads the files of a folder. Fewer than all training files are fine. Throws `DataError`. */
export async function cifar(name: CifarName, folder: string): Promise<ImageSet> {
  const form = cifarForms[name];
  const names = await readdir(folder).catch((error) => {
    throw new DataError(
      `Cannot read the folder ${folder}: ${reasonOf(error)}; ./terse data prepare ${name} fetches the images, and without data.path made images stand in.`,
    );
  });
  const hash = createHash("sha256");
  const read = async (pattern: RegExp, what: string) => {
    const files = names.filter((file) => pattern.test(file)).sort();
    if (files.length === 0)
      throw new DataError(
        `${folder} has no ${what} images of ${name}, files named like ${example(pattern)}; name the folder of the binary version, which ./terse data prepare ${name} fetches.`,
      );
    const parts = await Promise.all(files.map((file) => readRecords(join(folder, file), form)));
    for (const { bytes } of parts) hash.update(`${bytes.length} `).update(bytes);
    const records = parts.reduce((sum, { count }) => sum + count, 0);
    const [labels, images] = [new Uint8Array(records), new Uint8Array(records * 3 * pixels)];
    let at = 0;
    for (const { bytes, count } of parts)
      for (let i = 0; i < count; i++, at++) {
        const begin = i * (form.labelBytes + 3 * pixels) + form.labelBytes;
        labels[at] = bytes[begin - 1]!;
        interleave(bytes.subarray(begin, begin + 3 * pixels), images.subarray(at * 3 * pixels));
      }
    return imagesInMemory(images, labels, 3 * pixels);
  };
  const [training, validation] = [await read(form.training, "training"), await read(form.validation, "test")];
  const { classes, mean, deviation } = form;
  const common = { source: folder, classes, height: side, width: side, mean, deviation };
  return { ...common, training, validation, fingerprint: hash.digest("hex") };
}

/** A name that fits: data_batch_1.bin. */
const example = (pattern: RegExp) => pattern.source.replace("\\d+", "1").replaceAll(/[\^$\\]/g, "");

async function readRecords(path: string, { classes, labelBytes }: (typeof cifarForms)[CifarName]) {
  const { size } = await stat(path);
  const record = labelBytes + 3 * pixels;
  if (size === 0 || size % record !== 0)
    throw new DataError(
      `${path} has ${size} bytes, which is no multiple of ${record}, the bytes of an image: it is cut short or of another format; fetch it again.`,
    );
  const bytes = new Uint8Array(size);
  await readInto(bytes, path);
  const count = size / record;
  for (let i = 0; i < count; i++) {
    const label = bytes[i * record + labelBytes - 1]!;
    if (label >= classes)
      throw new DataError(
        `${path}: image ${i} has label ${label}, and the labels of ${classes} classes are 0 to ${classes - 1}; fetch the file again.`,
      );
  }
  return { bytes, count };
}

/** (3, H, W) → (H, W, 3) */
function interleave(planes: Uint8Array, into: Uint8Array): void {
  for (let i = 0; i < pixels; i++)
    for (let channel = 0; channel < 3; channel++) into[3 * i + channel] = planes[channel * pixels + i]!;
}
