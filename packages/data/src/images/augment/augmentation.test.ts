import { describe, expect, it } from "vitest";
import type { ImageBatch } from "../../batch.ts";
import type { Dataset } from "../../dataset.ts";
import { datasets } from "../../datasets.ts";
import { sampledData } from "../../sampled-data.ts";
import { datasetContract } from "../../testing/dataset-contract.ts";
import { ImageSamples } from "../image-samples.ts";
import { madeImages } from "../made-images.ts";
import { type AugmentationOptions, noAugmentation } from "./augmentation.ts";

const set = madeImages({ classes: 4, side: 16, training: 30, validation: 12 });
const { fields } = datasets.cifar10;

const cases: [string, Partial<AugmentationOptions>][] = [
  ["crop, flip and Cutout", { crop: 4, flip: true, cutout: 6 }],
  ["AutoAugment", { policy: "autoaugment" }],
  ["RandAugment", { policy: "randaugment" }],
  ["Mixup and CutMix", { mixup: 1, cutmix: 1, crop: 4 }],
];
describe.each(cases)("images with %s", (_, augment) => {
  const open = async (given: { batchSize: number; seed: number; rank: number; ranks: number }) =>
    sampledData(new ImageSamples(set, { seed: given.seed, augment: { ...noAugmentation, ...augment } }), given);
  datasetContract(open, { samples: 30, fields, random: true });

  it("changes training images, and no image of validation", async () => {
    const given = { batchSize: 12, seed: 1, rank: 0, ranks: 1 };
    const [changed, plain] = [await open(given), sampledData(new ImageSamples(set, { seed: 1 }), given)];
    const values = async (data: Dataset) => [...(await ((await data.next())[0] as ImageBatch).images.toTypedArray())];
    expect(await values(changed)).not.toEqual(await values(plain));
    const heldOut = async (data: Dataset) => {
      for await (using batch of data.validation({ windows: 64, sharded: false }))
        return [...(await (batch as ImageBatch).images.toTypedArray())];
      return [];
    };
    expect(await heldOut(changed)).toEqual(await heldOut(plain));
  });
});

it("mixed labels are shares of classes that add up to 1", async () => {
  const augment = { ...noAugmentation, mixup: 0.4, cutmix: 1 };
  const data = sampledData(new ImageSamples(set, { seed: 1, augment }), {
    batchSize: 20,
    seed: 1,
    rank: 0,
    ranks: 1,
  });
  const { labels } = (await data.next())[0] as ImageBatch;
  expect([labels.shape, labels.dtype]).toEqual([[20, 4], "f32"]);
  const shares = (await labels.toTypedArray()) as Float32Array;
  for (let row = 0; row < 20; row++) {
    const own = shares.subarray(row * 4, row * 4 + 4);
    expect(own.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 6);
    expect(own.filter((share) => share > 0).length).toBeLessThanOrEqual(2);
  }
  expect(shares.some((share) => share > 0.01 && share < 0.99)).toBe(true);
});
