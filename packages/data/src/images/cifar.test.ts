import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ImageBatch } from "../batch.ts";
import { datasets } from "../datasets.ts";
import { datasetContract } from "../testing/dataset-contract.ts";
import { noAugmentation } from "./augment/augmentation.ts";
import { cifar } from "./cifar.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-cifar-"));
  write("data_batch_1.bin", 10, 1);
  write("data_batch_2.bin", 7, 1, 10);
  write("test_batch.bin", 11, 1, 17);
  write("train.bin", 5, 2);
  write("test.bin", 3, 2, 5);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const byte = (image: number, at: number) => (image * 7 + at * 13 + (at >> 8)) & 255;

/** Images `first`, `first` + 1 …, of labels 0, 1 …; CIFAR-100's coarse label is 99. */
function write(name: string, images: number, labelBytes: number, first = 0): void {
  const record = labelBytes + 3072;
  const bytes = new Uint8Array(images * record);
  for (let i = 0; i < images; i++) {
    if (labelBytes === 2) bytes[i * record] = 99;
    bytes[i * record + labelBytes - 1] = i % 10;
    for (let at = 0; at < 3072; at++) bytes[i * record + labelBytes + at] = byte(first + i, at);
  }
  writeFileSync(join(folder, name), bytes);
}

describe("cifar10", () => {
  const { fields } = datasets.cifar10;
  datasetContract((given) => datasets.cifar10.open({ ...noAugmentation, path: folder }, given), {
    samples: 17,
    fields,
  });

  it("reads all files of a folder, in order, and turns planes into pixels", async () => {
    const { training, validation } = await cifar("cifar10", folder);
    expect([training.count, validation.count]).toEqual([17, 11]);
    expect(Array.from({ length: 17 }, (_, i) => training.label(i))).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6,
    ]);
    const image = await training.read(12);
    for (const [y, x, channel] of [
      [0, 0, 0],
      [31, 31, 2],
      [3, 20, 1],
    ] as const)
      expect(image[(y * 32 + x) * 3 + channel]).toBe(byte(12, channel * 1024 + y * 32 + x));
  });

  it("gives normalised images (B, 3, H, W) and labels (B)", async () => {
    const data = await datasets.cifar10.open(
      { ...noAugmentation, path: folder },
      { batchSize: 4, seed: 0, rank: 0, ranks: 1 },
    );
    for await (using batch of data.validation({ windows: 2, sharded: false })) {
      const { images, labels } = batch as ImageBatch;
      expect([images.shape, images.dtype, labels.shape, labels.dtype]).toEqual([[2, 3, 32, 32], "f32", [2], "i64"]);
      expect(await labels.toTypedArray()).toEqual(BigInt64Array.of(0n, 0n));
      const values = (await images.toTypedArray()) as Float32Array;
      // The second image is the last one, number 27.
      expect(values[3072 + 1024 + 5]).toBeCloseTo((byte(27, 1024 + 5) / 255 - 0.4822) / 0.2435, 5);
    }
  });

  it("refuses a file that is cut short, a label out of range, and a folder without the files", async () => {
    const broken = mkdtempSync(join(tmpdir(), "terse-cifar-"));
    const refused = (message: RegExp) => expect(cifar("cifar10", broken)).rejects.toThrow(message);
    const bytes = readFileSync(join(folder, "test_batch.bin"));
    try {
      await refused(
        /has no training images of cifar10, files named like data_batch_1\.bin; name the folder of the binary version/,
      );
      writeFileSync(join(broken, "data_batch_1.bin"), bytes.subarray(0, 5000));
      await refused(/data_batch_1\.bin has 5000 bytes, which is no multiple of 3073, .*cut short/);
      bytes[2 * 3073] = 10;
      writeFileSync(join(broken, "data_batch_1.bin"), bytes);
      await refused(/data_batch_1\.bin: image 2 has label 10, and the labels of 10 classes are 0 to 9/);
      const many = new Uint8Array(70 * 3073);
      many[69 * 3073] = 10;
      writeFileSync(join(broken, "data_batch_1.bin"), many);
      writeFileSync(join(broken, "test_batch.bin"), many);
      const { training, close } = await cifar("cifar10", broken);
      expect(() => training.label(69)).toThrow(/image 69 has label 10/); // only the first 64 are looked at before
      truncateSync(join(broken, "data_batch_1.bin"), 60 * 3073);
      expect(() => training.read(65)).toThrow(/data_batch_1\.bin became shorter while it was read; start again/);
      close!();
    } finally {
      rmSync(broken, { recursive: true });
    }
    await expect(cifar("cifar10", join(folder, "absent"))).rejects.toThrow(
      /it does not exist; \.\/terse data prepare cifar10/,
    );
  });
});

describe("cifar100", () => {
  it("reads the fine labels", async () => {
    const { training, validation, classes } = await cifar("cifar100", folder);
    expect([training.count, validation.count, classes]).toEqual([5, 3, 100]);
    expect([0, 1, 2, 3, 4].map((i) => training.label(i))).toEqual([0, 1, 2, 3, 4]);
    expect((await training.read(3))[0]).toBe(byte(3, 0));
  });
});

const real = new URL("../../../../../shared/data/cifar-10-subset", import.meta.url).pathname;
const absent = existsSync(real) ? "" : ` (skipped: no CIFAR-10 images at ${real})`;
it.skipIf(absent)(`reads CIFAR-10's own files${absent}`, async () => {
  const { training, validation } = await cifar("cifar10", real);
  expect([training.count, validation.count]).toEqual([5000, 1000]);
  const counts = new Array(10).fill(0);
  for (let i = 0; i < 1000; i++) counts[validation.label(i)]++;
  for (const count of counts) expect(count).toBeGreaterThan(50);
});
