import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp, { type Sharp } from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ImageBatch } from "../batch.ts";
import type { DatasetState } from "../dataset.ts";
import { datasets } from "../datasets.ts";
import { datasetContract, rowsOf } from "../testing/dataset-contract.ts";
import { noAugmentation } from "./augment/augmentation.ts";
import { imageFolder } from "./image-folder.ts";

let folder: string;
const size = 8;
const pixel = (image: number, at: number) => (image * 37 + at * 11) & 255;
const raw = (image: number, width = size, height = size) =>
  Uint8Array.from({ length: width * height * 3 }, (_, at) => pixel(image, at));

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "terse-pictures-"));
  for (const part of ["train", "val"])
    for (const [label, name] of ["cat", "dog"].entries()) {
      mkdirSync(join(folder, part, name), { recursive: true });
      for (let i = 0; i < (part === "train" ? 8 : 3); i++) {
        const image = (part === "train" ? 0 : 40) + label * 20 + i;
        const picture = sharp(raw(image), { raw: { width: size, height: size, channels: 3 } });
        await picture.png().toFile(join(folder, part, name, `${i}.png`));
      }
    }
  writeFileSync(join(folder, "train/cat/notes.txt"), "no picture");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const entry = datasets["image-folder"];
const options = { ...noAugmentation, classes: 2, size, resize: false, validationFraction: 0.1, maxCorrupt: 0 };
const open = (given: object, more = {}) =>
  entry.open({ ...options, path: folder, ...more }, { batchSize: 2, seed: 0, rank: 0, ranks: 1, ...given });
const plain = { path: "", classes: 2, size, resize: false, validationFraction: 0.25 };

/** A copy of the pictures of training, to break. */
const copied = () => {
  const path = mkdtempSync(join(tmpdir(), "terse-pictures-"));
  cpSync(join(folder, "train"), path, { recursive: true });
  return path;
};

describe("a folder of pictures", () => {
  datasetContract(open, { samples: 16, fields: entry.fields });

  it("gives the pixels of PNG files, labels by the order of the folders' names", async () => {
    const { training, validation } = await imageFolder({ ...plain, path: folder });
    expect([training.count, validation.count]).toEqual([16, 6]);
    expect(await training.read(3)).toEqual(raw(3));
    expect(await validation.read(4)).toEqual(raw(61));
    expect([training.label(0), training.label(15), validation.label(2), validation.label(3)]).toEqual([0, 1, 0, 1]);
  });

  it("has the same fingerprint in another place, and holds a fraction out where there are no train and val", async () => {
    const [a, b] = [copied(), copied()];
    const [first, second] = [await imageFolder({ ...plain, path: a }), await imageFolder({ ...plain, path: b })];
    expect(first.fingerprint).toBe(second.fingerprint);
    expect([first.training.count, first.validation.count]).toEqual([12, 4]);
    const pixels = new Set<string>();
    for (const images of [first.training, first.validation])
      for (let i = 0; i < images.count; i++) pixels.add(String(await images.read(i)));
    expect(pixels.size).toBe(16);
    for (const path of [a, b]) rmSync(path, { recursive: true });
  });

  it("has another fingerprint with a longer file, with another end of a file, and with another name", async () => {
    const path = copied();
    const file = join(path, "cat", "3.png");
    const fingerprint = async () => (await imageFolder({ ...plain, path })).fingerprint;
    const found = [await fingerprint()];
    appendFileSync(file, "a");
    found.push(await fingerprint());
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill("b", bytes.length - 1));
    found.push(await fingerprint());
    renameSync(file, join(path, "cat", "30.png"));
    found.push(await fingerprint());
    expect(new Set(found).size).toBe(4);
    rmSync(path, { recursive: true });
  });

  it("reads JPEG, grey, transparent and 16-bit pictures, and scales other sizes where it may", async () => {
    const path = copied();
    const make = (name: string, picture: Sharp) => picture.toFile(join(path, "cat", name));
    const flat = (channels: 3 | 4, value: object) =>
      sharp({ create: { width: 30, height: 20, channels, background: value as never } });
    await make("a.jpg", flat(3, { r: 200, g: 100, b: 50 }).jpeg({ quality: 100, chromaSubsampling: "4:4:4" }));
    await make("b.png", flat(4, { r: 10, g: 20, b: 30, alpha: 0 }).png());
    await make("c.png", flat(3, { r: 90, g: 90, b: 90 }).greyscale().png());
    await make("d.png", flat(3, { r: 90, g: 90, b: 90 }).toColourspace("rgb16").png());
    const { training } = await imageFolder({ ...plain, path, resize: true, validationFraction: 0 });
    const means = new Set<string>();
    for (let i = 0; i < training.count; i++) {
      const pixels = await training.read(i);
      expect(pixels.length).toBe(size * size * 3);
      means.add(
        [0, 1, 2]
          .map((channel) => Math.round(pixels.filter((_, at) => at % 3 === channel).reduce((a, b) => a + b) / 64))
          .join(),
      );
    }
    for (const mean of ["200,100,50", "10,20,30", "90,90,90"]) expect([...means]).toContain(mean);
    await expect(imageFolder({ ...plain, path, validationFraction: 0 })).rejects.toThrow(
      /has 30 × 20 pixels, and data\.size is 8; set data\.resize to true/,
    );
    rmSync(path, { recursive: true });
  });

  it("replaces corrupt pictures by others and counts them, and refuses more than the set share", async () => {
    const path = copied();
    writeFileSync(join(path, "dog/0.png"), "no picture at all");
    const given = { path, validationFraction: 0 };
    await expect(open({}, given)).rejects.toThrow(
      `${path}: 1 of 16 images cannot be decoded, and data.maxCorrupt allows none; the last is dog/0.png (it is no picture that is read: it begins with "no picture at al"). Raise data.maxCorrupt, also to resume a run, or replace them and start a new one.`,
    );
    const data = await open({}, { ...given, maxCorrupt: 0.1 });
    const images: string[] = [];
    for (const batch of (await data.next(8)) as ImageBatch[]) {
      const values = (await batch.images.toTypedArray()) as Float32Array;
      images.push(values.subarray(0, 192).join(), values.subarray(192).join());
    }
    expect([images.length, new Set(images).size, data.mostSkipped]).toEqual([16, 15, 1.6]);
    expect(data.skipped).toEqual([expect.stringMatching(/^dog\/0\.png \(it is no picture/)]);
    rmSync(path, { recursive: true });
  });

  it("has the same rows on any number of ranks and after a resume where pictures are damaged, and names each", async () => {
    const path = mkdtempSync(join(tmpdir(), "terse-pictures-"));
    for (const name of ["cat", "dog"]) {
      mkdirSync(join(path, "train", name), { recursive: true });
      for (let i = 0; i < 100; i++) {
        const picture = sharp(raw(i + (name === "cat" ? 0 : 100)), { raw: { width: size, height: size, channels: 3 } });
        await picture.png().toFile(join(path, "train", name, `${String(i).padStart(3, "0")}.png`));
      }
    }
    // Not among the 64 that are decoded before the first step
    const damage = (file: string, change: (bytes: Buffer) => Buffer) =>
      writeFileSync(join(path, "train", file), change(readFileSync(join(path, "train", file))));
    const jpeg = await sharp({ create: { width: size, height: size, channels: 3, background: "red" } })
      .jpeg()
      .toBuffer();
    damage("cat/001.png", () => jpeg.subarray(0, -60));
    damage("cat/005.png", (bytes) => {
      bytes[bytes.length - 20]! ^= 1;
      return bytes;
    });
    damage("dog/004.png", () => Buffer.of());
    damage("dog/021.png", () => Buffer.from("<!DOCTYPE html>"));
    const damaged = [
      "train/cat/001.png (VipsJpeg: premature end of JPEG image)",
      "train/cat/005.png (vipspng: libpng read error)",
      "train/dog/004.png (it is empty)",
      'train/dog/021.png (it is no picture that is read: it begins with "<!DOCTYPE html>")',
    ];

    const rows = async (ranks: number, steps: number, from?: DatasetState) => {
      const world = await Promise.all(
        Array.from({ length: ranks }, (_, rank) =>
          open({ rank, ranks, batchSize: 20 / ranks }, { path, maxCorrupt: 0.02 }),
        ),
      );
      if (from) for (const data of world) data.restore(from);
      const seen: string[] = [];
      for (let step = 0; step < steps; step++)
        for (const data of world)
          for (const batch of (await data.next()) as ImageBatch[])
            seen.push(...(await rowsOf(batch as never, entry.fields)));
      const skipped = new Set(world.flatMap((data) => data.skipped!));
      for (const data of world) await data[Symbol.asyncDispose]();
      return { seen, skipped: [...skipped].sort(), state: world[0]!.state() };
    };
    const one = await rows(1, 10);
    expect(one.skipped).toEqual(damaged);
    expect(new Set(one.seen).size).toBe(196);
    const two = await rows(2, 5);
    expect(two.seen).toEqual(one.seen.slice(0, 100));
    const resumed = await rows(2, 5, two.state);
    expect(resumed.seen).toEqual(one.seen.slice(100));
    expect([...new Set([...two.skipped, ...resumed.skipped])].sort()).toEqual(damaged);
    await expect(
      rows(1, 10)
        .then(() => open({}, { path, maxCorrupt: 0.01 }))
        .then((data) => data.next(200)),
    ).rejects.toThrow(/of 200 images cannot be decoded, and data\.maxCorrupt allows 2; the last is train\//);
    rmSync(path, { recursive: true });
  });

  it("takes another picture for one that is removed, becomes a pipe, or cannot be opened during the run", async () => {
    const path = copied();
    const data = await open({ batchSize: 1 }, { path, validationFraction: 0, maxCorrupt: 0.5 });
    const names = readdirSync(join(path, "cat")).filter((name) => name.endsWith(".png"));
    for (const name of names.slice(0, 4)) rmSync(join(path, "cat", name));
    execFileSync("mkfifo", [join(path, "cat", names[0]!)]);
    mkdirSync(join(path, "cat", names[1]!));
    expect((await data.next(16)).length).toBe(16);
    expect((await data.next(16)).length).toBe(16);
    const why = data.skipped!.join("; ");
    for (const reason of [/a named pipe and no regular file/, /a folder and no regular file/, /it does not exist/])
      expect(why).toMatch(reason);
    await data[Symbol.asyncDispose]();
    rmSync(path, { recursive: true });
  });

  it("counts the classes where they are not set, and gives them to the model", async () => {
    const { classes: _, ...unset } = options;
    expect(entry.facts({ ...unset, path: folder })).toMatchObject({ classes: 2, height: size, channels: 3 });
    expect(entry.facts({ ...options, classes: 7, path: "absent" })).toMatchObject({ classes: 7 }); // is not looked at
    expect(() => entry.facts({ ...unset, path: join(folder, "absent") })).toThrow(/Cannot read the folder/);
    const data = await entry.open({ ...unset, path: folder }, { batchSize: 2, seed: 0, rank: 0, ranks: 1 });
    expect(data.remarks).toEqual(["data.classes: 2, cat, dog"]);
    await data[Symbol.asyncDispose]();
  });

  it("refuses a held-out picture of another size before the first step", async () => {
    const path = mkdtempSync(join(tmpdir(), "terse-pictures-"));
    cpSync(folder, path, { recursive: true });
    const other = sharp(raw(0, size, 2 * size), { raw: { width: size, height: 2 * size, channels: 3 } });
    await other.png().toFile(join(path, "val/dog/2.png"));
    await expect(open({}, { path })).rejects.toThrow(/val.dog.2\.png has 8 × 16 pixels, and data\.size is 8/);
    rmSync(path, { recursive: true });
  });

  it("reads every header before the first step, and shares them between the ranks", async () => {
    const path = mkdtempSync(join(tmpdir(), "terse-pictures-"));
    for (const name of ["cat", "dog"]) {
      mkdirSync(join(path, "train", name), { recursive: true });
      for (let i = 0; i < 100; i++)
        cpSync(
          join(folder, "train", name, `${i % 8}.png`),
          join(path, "train", name, `${String(i).padStart(3, "0")}.png`),
        );
    }
    const odd = join(path, "train/cat/001.png"); // the second of 200, not one of the 64 that are decoded
    const good = readFileSync(odd);
    const given = { path, validationFraction: 0 };
    const ranks = () =>
      Promise.all(
        [0, 1].map((rank) =>
          open({ rank, ranks: 2 }, given).then(
            async (data) => {
              await data[Symbol.asyncDispose]();
              return "opened";
            },
            (error: Error) => error.message,
          ),
        ),
      );
    const other = sharp(raw(0, size, 2 * size), { raw: { width: size, height: 2 * size, channels: 3 } });
    await other.png().toFile(odd);
    expect((await ranks()).sort()).toEqual([expect.stringMatching(/cat.001\.png has 8 × 16 pixels/), "opened"]);
    writeFileSync(odd, "no picture");
    expect((await ranks()).sort()).toEqual([
      expect.stringMatching(/1 of 200 images cannot be decoded, .*cat.001\.png/),
      "opened",
    ]);
    writeFileSync(odd, good);
    expect(await ranks()).toEqual(["opened", "opened"]);
    rmSync(path, { recursive: true });
  });

  it("refuses held-out pictures of which none can be decoded, also where all may be corrupt", async () => {
    const path = mkdtempSync(join(tmpdir(), "terse-pictures-"));
    cpSync(folder, path, { recursive: true });
    for (const name of ["cat", "dog"])
      for (let i = 0; i < 3; i++) writeFileSync(join(path, "val", name, `${i}.png`), "no picture");
    const data = await open({}, { path, maxCorrupt: 1 });
    const first = (data.validation({ windows: 2, sharded: false }) as AsyncIterable<ImageBatch>)[
      Symbol.asyncIterator
    ]();
    await expect(first.next()).rejects.toThrow(
      /none of the 6 images of validation can be decoded; fetch them again, or give others\. The last is .*png \(.+\)\.$/,
    );
    rmSync(path, { recursive: true });
  });

  it("refuses another number of classes, and classes that only the held-out pictures have", async () => {
    await expect(open({}, { classes: 5 })).rejects.toThrow(
      /has folders of 2 classes, and data\.classes is 5; set data\.classes to 2/,
    );
    await expect(entry.inventory!({ ...options, classes: 5, path: folder })).rejects.toThrow(/set data\.classes to 2/);
    const flat = mkdtempSync(join(tmpdir(), "terse-pictures-"));
    cpSync(join(folder, "val/cat"), flat, { recursive: true });
    await expect(open({}, { path: flat })).rejects.toThrow(
      `${flat} has no folder with pictures: put those of each class into a folder of its own, ${flat}/CLASS/… or ${flat}/train/CLASS/… and ${flat}/val/CLASS/….`,
    );
    rmSync(flat, { recursive: true });
    const path = mkdtempSync(join(tmpdir(), "terse-pictures-"));
    cpSync(folder, path, { recursive: true });
    mkdirSync(join(path, "val/lion"));
    await expect(open({}, { path })).rejects.toThrow(/val has a class lion, which .*train lacks/);
    rmSync(path, { recursive: true });
    await expect(open({}, { path: join(folder, "absent") })).rejects.toThrow(
      /Cannot read the folder .*absent: it does not exist/,
    );
  });
});
