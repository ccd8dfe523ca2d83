/** What a seed means: rows that another implementation, golden.py, has computed. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { needsModules, python } from "../../tensor/src/testing/python.ts";
import golden from "../golden.json" with { type: "json" };
import { noAugmentation } from "./images/augment/augmentation.ts";
import { ImageSamples } from "./images/image-samples.ts";
import { type ImageSet, imagesInMemory } from "./images/images.ts";
import { maskTokens } from "./masked-text/masking.ts";
import { permuted } from "./permutation.ts";
import { RandomNumbers } from "./random.ts";
import { TokenSamples } from "./tokens/token-samples.ts";
import { tokensInMemory } from "./tokens/token-source.ts";

it.each(golden.permutations)("orders $n samples for seed $seed in epoch $epoch as golden.py does", (given) => {
  const { n, seed, epoch, order } = given;
  expect(order.map((_, i) => permuted(i, n, seed, epoch))).toEqual(order);
});

it.each(golden.shifts)("shifts rows of $blockSize for seed $seed in epoch $epoch as golden.py does", async (given) => {
  const { seed, epoch, blockSize, shift } = given;
  const tokens = tokensInMemory(
    "numbers",
    Uint16Array.from({ length: 4 * blockSize }, (_, i) => i),
  );
  const samples = new TokenSamples({
    source: "numbers",
    training: [tokens],
    validation: [],
    blockSize,
    vocabulary: 65536,
    seed,
    fingerprint: "",
  });
  expect(samples.facts.trainingSamples).toBe(3);
  const rows = await samples.training([{ sample: 2, position: 3 * epoch + 1 }]);
  expect(Number(rows["tokens"]!.data[0])).toBe(2 * blockSize + shift);
});

it.each(golden.masks)(
  "masks the row at $position for seed $seed as golden.py does",
  ({ seed, position, ...expected }) => {
    const tokens = Int32Array.from({ length: 40 }, (_, i) => i);
    const places = [...tokens.keys()].slice(1, 39);
    const random = new RandomNumbers(seed, position, "masking");
    const labels = maskTokens(tokens, places, { fraction: 0.15, mask: 99, vocabulary: 98 }, random);
    expect({ tokens: [...tokens], labels: [...labels] }).toEqual(expected);
  },
);

const [side, images, classes] = [32, 4, 3];

function pictures(): ImageSet {
  const pixels = Uint8Array.from({ length: images * side * side * 3 }, (_, i) => {
    const [channel, x, y] = [i % 3, Math.floor(i / 3) % side, Math.floor(i / (3 * side)) % side];
    return 5 * y + 3 * x + 71 * channel + 29 * Math.floor(i / (3 * side * side)) + ((x * y) >> 3);
  });
  const labels = Array.from({ length: images }, (_, i) => i % classes);
  const all = imagesInMemory(pixels, labels, side * side * 3);
  return {
    source: "formulas",
    classes,
    height: side,
    width: side,
    mean: [0.5, 0.25, 0.125],
    deviation: [0.25, 0.5, 0.75],
    fingerprint: "",
    training: all,
    validation: all,
  };
}

describe("images have the bytes of golden.py", () => {
  it.each(golden.images)("with $options", async ({ options, rows }) => {
    const augment = { ...noAugmentation, ...(options as object) };
    for (const { seed, sample, position, sha256, label } of rows) {
      const arrays = await new ImageSamples(pictures(), { seed, augment }).training([{ sample, position }]);
      const { data } = arrays["images"]!;
      const digest = createHash("sha256").update(new Uint8Array(data.buffer)).digest("hex");
      const labels = Array.from(arrays["labels"]!.data as ArrayLike<number | bigint>, Number);
      expect([seed, sample, position, labels, digest]).toEqual([seed, sample, position, [label].flat(), sha256]);
    }
  });
});

const why = needsModules("torchvision", "PIL");
it.skipIf(why)(`golden.json is what golden.py gives${why}`, () => {
  execFileSync(python!, [fileURLToPath(new URL("../golden.py", import.meta.url)), "--check"]);
});
