/** Batches of images: (B, 3, H, W) f32, augmented and normalised, and their labels. */
import { checkSkipped } from "../check-skipped.ts";
import { DataError } from "../data-error.ts";
import { RandomNumbers } from "../random.ts";
import type { Arrays, Row, SampleFacts, Samples } from "../samples.ts";
import { type AugmentationOptions, augmentPixels, noAugmentation } from "./augment/augmentation.ts";
import { boxAbout, cutout } from "./augment/cutout.ts";
import { cutmix, cutmixBox, mixup, symmetricBeta } from "./augment/mixing.ts";
import { CorruptImage, type ImageSet, type Images, keyOf } from "./images.ts";

interface Options {
  readonly seed: number;
  readonly augment?: AugmentationOptions;
  /** The largest share of all images that may be corrupt. */
  readonly corrupt?: number;
}

/** A normalised image, (3, H, W), and its label. */
interface Example {
  readonly image: Float32Array;
  readonly label: number;
}

export class ImageSamples implements Samples {
  readonly facts: SampleFacts;
  readonly #set: ImageSet;
  readonly #seed: number;
  readonly #augment: AugmentationOptions;
  readonly #normalised: readonly Float32Array[]; // of each channel, the value of each byte
  readonly #corrupt: Map<string, string>; // part and number of an image; what it is called, and why

  constructor(set: ImageSet, { seed, augment = noAugmentation, corrupt = 0 }: Options) {
    const { source, training, validation, fingerprint, classNames, inventory, remarks } = set;
    this.facts = {
      source,
      unit: "image",
      trainingUnits: training.count,
      validationUnits: validation.count,
      item: "image",
      itemsPerRow: 1,
      trainingSamples: training.count,
      validationSamples: validation.count,
      mostSkipped: corrupt * (training.count + validation.count),
      fingerprint,
      classNames,
      inventory,
      remarks,
    };
    this.#set = set;
    this.#seed = seed;
    this.#augment = augment;
    this.#normalised = set.mean.map((mean, channel) =>
      Float32Array.from({ length: 256 }, (_, byte) => (byte / 255 - mean) / set.deviation[channel]!),
    );
    this.#corrupt = new Map(set.corrupt);
    checkSkipped(this.facts, this.skipped);
  }

  get skipped(): readonly string[] {
    return [...this.#corrupt.values()];
  }

  async training(rows: readonly Row[]): Promise<Arrays> {
    const { mixup: withMixup, cutmix: withCutmix } = this.#augment;
    if (withMixup === 0 && withCutmix === 0)
      return this.#batch(await Promise.all(rows.map(({ sample, position }) => this.#augmented(sample, position))));
    const mixed = await Promise.all(rows.map((row) => this.#mixed(row)));
    const shares = new Float32Array(rows.length * this.#set.classes);
    for (const [row, { first, second, share }] of mixed.entries()) {
      shares[row * this.#set.classes + first.label]! += share;
      shares[row * this.#set.classes + second]! += 1 - share;
    }
    const { images } = this.#batch(mixed.map(({ first }) => first));
    return { images: images!, labels: { data: shares, shape: [rows.length, this.#set.classes] } };
  }

  async validation(samples: readonly number[]): Promise<Arrays> {
    return this.#batch(
      await Promise.all(
        samples.map(async (sample) => {
          const { pixels, label } = await this.#read("validation", sample);
          return { image: this.#normalise(pixels), label };
        }),
      ),
    );
  }

  #batch(examples: readonly Example[]): Arrays {
    const { height, width } = this.#set;
    const images = new Float32Array(examples.length * 3 * height * width);
    for (const [row, { image }] of examples.entries()) images.set(image, row * image.length);
    return {
      images: { data: images, shape: [examples.length, 3, height, width] },
      labels: { data: BigInt64Array.from(examples, ({ label }) => BigInt(label)), shape: [examples.length] },
    };
  }

  /** A training image with the augmentations of the row at `position`. */
  async #augmented(
    sample: number,
    position: number,
    purpose: "augmentation" | "partner" = "augmentation",
  ): Promise<Example> {
    const { height, width } = this.#set;
    const random = new RandomNumbers(this.#seed, position, purpose);
    const { pixels, label } = await this.#read("training", sample);
    const image = this.#normalise(augmentPixels({ data: pixels, height, width }, this.#augment, random).data);
    const side = this.#augment.cutout;
    if (side > 0)
      cutout(image, height, width, boxAbout(random.below(height), random.below(width), side, side, height, width));
    return { image, label };
  }

  /** An image that is mixed with another one; `share` is that of its own label, and `second` the other label. */
  async #mixed({ sample, position }: Row): Promise<{ first: Example; second: number; share: number }> {
    const { height, width, training } = this.#set;
    const { mixup: mixupAlpha, cutmix: cutmixAlpha } = this.#augment;
    const random = new RandomNumbers(this.#seed, position, "mixing");
    const other = random.below(training.count);
    const asMixup = cutmixAlpha === 0 || (mixupAlpha > 0 && random.chance(0.5));
    const lambda = symmetricBeta(asMixup ? mixupAlpha : cutmixAlpha, random);
    const box = cutmixBox(lambda, height, width, random);
    const first = await this.#augmented(sample, position);
    const second = await this.#augmented(other, position, "partner");
    if (asMixup) mixup(first.image, second.image, lambda);
    const share = asMixup ? lambda : cutmix(first.image, second.image, height, width, box);
    return { first, second: second.label, share };
  }

  /** Image `sample`, or the next one that can be read. Throws `DataError` where too many cannot, or none can. */
  async #read(part: "training" | "validation", sample: number): Promise<{ pixels: Uint8Array; label: number }> {
    const images: Images = this.#set[part];
    let last = "";
    for (let tried = 0; tried < images.count; tried++) {
      const i = (sample + tried) % images.count;
      try {
        return { pixels: await images.read(i), label: images.label(i) };
      } catch (error) {
        if (!(error instanceof CorruptImage)) throw error;
        last = error.message;
        const known = this.#corrupt.size;
        this.#corrupt.set(keyOf(part, i), last);
        if (this.#corrupt.size > known) checkSkipped(this.facts, this.skipped);
      }
    }
    throw new DataError(
      `${this.#set.source}: none of the ${images.count} images of ${part} can be decoded; fetch them again, or give others. The last is ${last}.`,
    );
  }

  async close(): Promise<void> {
    this.#set.close?.();
  }

  /** (H, W, 3) u8 → (3, H, W) f32 */
  #normalise(pixels: Uint8Array): Float32Array {
    const area = this.#set.height * this.#set.width;
    const image = new Float32Array(3 * area);
    for (const [channel, value] of this.#normalised.entries())
      for (let i = 0; i < area; i++) image[channel * area + i] = value[pixels[3 * i + channel]!]!;
    return image;
  }
}
