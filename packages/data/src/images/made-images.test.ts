import { describe, expect, it } from "vitest";
import { datasets } from "../datasets.ts";
import { sampledData } from "../sampled-data.ts";
import { datasetContract } from "../testing/dataset-contract.ts";
import { ImageSamples } from "./image-samples.ts";
import { madeImages } from "./made-images.ts";

describe("made images", () => {
  const small = () => new ImageSamples(madeImages({ classes: 10, side: 8, training: 30, validation: 12 }), { seed: 0 });
  datasetContract(async (given) => sampledData(small(), given), { samples: 30, fields: datasets.cifar10.fields });

  it("are the same at every call, and every class has as many", () => {
    const [a, b] = [
      madeImages({ classes: 7, side: 16, training: 70 }),
      madeImages({ classes: 7, side: 16, training: 70 }),
    ];
    expect(a.fingerprint).toBe(b.fingerprint);
    const counts = new Array(7).fill(0);
    for (let i = 0; i < 70; i++) counts[a.training.label(i)]++;
    expect(counts).toEqual(new Array(7).fill(10));
  });

  it("have labels of all classes, also of more than a byte counts", () => {
    const { training } = madeImages({ classes: 300, side: 2, training: 300, validation: 0 });
    expect([255, 256, 299].map((i) => training.label(i))).toEqual([255, 256, 299]);
  });

  it("can be learned: the power of a few waves tells most classes apart", async () => {
    const { training, validation } = madeImages({ classes: 10, training: 400, validation: 100 });
    const known = await Promise.all(Array.from({ length: 400 }, async (_, i) => powers(await training.read(i))));
    let right = 0;
    for (let i = 0; i < 100; i++) {
      const image = powers(await validation.read(i));
      const distances = known.map((other) => other.reduce((sum, x, k) => sum + (x - image[k]!) ** 2, 0));
      const nearest = distances.indexOf(Math.min(...distances));
      if (training.label(nearest) === validation.label(i)) right++;
    }
    expect(right).toBeGreaterThan(60); // 10 by chance
  });
});

/**
 * |Fourier coefficient| of the red channel and of red − green, at low frequencies, as shares of their sum: no phase, no
 * brightness.
 */
function powers(pixels: Uint8Array): number[] {
  const found: number[] = [];
  for (const channel of [0, 1])
    for (let ky = -5; ky <= 5; ky++)
      for (let kx = 0; kx <= 5; kx++) {
        if (kx === 0 && ky <= 0) continue;
        let [real, imaginary] = [0, 0];
        for (let y = 0; y < 32; y += 2)
          for (let x = 0; x < 32; x += 2) {
            const at = 3 * (y * 32 + x);
            const value = channel === 0 ? pixels[at]! : pixels[at]! - pixels[at + 1]!;
            const angle = (2 * Math.PI * (kx * x + ky * y)) / 32;
            real += value * Math.cos(angle);
            imaginary += value * Math.sin(angle);
          }
        found.push(Math.hypot(real, imaginary));
      }
  const sum = found.reduce((a, b) => a + b, 0);
  return found.map((x) => x / sum);
}
