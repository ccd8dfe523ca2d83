/**
 * A sample of the update with which one rank has voted, c = β₁ m + (1 − β₁) s g, where s has clipped g. The step is
 * over, and m is new. It was (m − (1 − β₂) s g) / β₂ before, so
 *
 *   c = β₁/β₂ m + (1 − β₁ − β₁ (1 − β₂)/β₂) s g
 *
 * and no step keeps a copy for this. Elements are at even distances in each layer, 64 Ki in all: half of them shared
 * evenly by the layers, half by their sizes. Means and largest are those of whole layers.
 */
import type { Layer } from "@terse/optimizers";
import { noGrad, scope, type Tensor } from "@terse/tensor";

const mostElements = 65536;
const chunk = 1 << 20; // elements of a layer that are worked on at once: two temporaries of 4 MiB

/** n sampled elements of L layers, in one array that can be sent. */
export interface UpdateSample {
  readonly all: Float32Array; // (2 n + 2 L)
  readonly c: Float32Array; // (n + L): each layer's c, and then its largest |c|, which gives codecs its scale
  readonly m: Float32Array; // (n)
  readonly means: Float32Array; // (L), of |c|
}

/** `counts`: the sampled elements of each layer. */
export function emptySample(counts: readonly number[]): UpdateSample {
  const [n, layers] = [counts.reduce((sum, count) => sum + count, 0), counts.length];
  const all = new Float32Array(2 * (n + layers));
  return {
    all,
    c: all.subarray(0, n + layers),
    m: all.subarray(n + layers, 2 * n + layers),
    means: all.subarray(-layers),
  };
}

/** The weights of m and s g in c. undefined where ranks do not vote, and where m tells nothing of what it was. */
export function weightsOf({ algorithm: { votes } }: Layer): { m: number; g: number } | undefined {
  if (votes === undefined) return undefined;
  const { beta1, beta2 } = votes;
  if (beta1 === beta2) return { m: 1, g: 0 }; // signum, and signsgd, whose m is s g
  return beta2 === 0 ? undefined : { m: beta1 / beta2, g: 1 - beta1 - (beta1 * (1 - beta2)) / beta2 };
}

/** The distance between two sampled elements of each layer, the same on every rank. */
export function distancesOf(layers: readonly Layer[]): number[] {
  const total = layers.reduce((sum, { segment }) => sum + segment.length, 0);
  return layers.map(({ segment: { length, shape } }) => {
    const share = (mostElements / 2) * (1 / layers.length + length / total);
    const rows = shape.length > 1 ? shape[0]! : length;
    let distance = Math.max(1, Math.ceil(length / share));
    // Through all columns of a matrix: a multiple of its width would always take the same one.
    while (greatestCommonDivisor(distance, length / rows) > 1) distance++;
    return distance;
  });
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

export const countOf = ({ segment: { length } }: Layer, distance: number): number => Math.ceil(length / distance);

/** This rank's sample of these layers, which all have weights. */
export async function sampleOf(layers: readonly Layer[], distances: readonly number[]): Promise<UpdateSample> {
  const sample = emptySample(layers.map((layer, i) => countOf(layer, distances[i]!)));
  let n = 0;
  for (const [i, layer] of layers.entries()) {
    const m = layer.elements["m"]!;
    const each = (x: Tensor) => x.slice(0, 0, x.length, distances[i]);
    await scope(async () => {
      const someC = noGrad(() => updateOf(layer, each));
      const someM = noGrad(() => each(m).contiguous());
      sample.c.set((await someC.toTypedArray()) as Float32Array, n + i);
      sample.m.set((await someM.toTypedArray()) as Float32Array, n);
    });
    n += countOf(layer, distances[i]!);
    const { mean, largest } = sizesOf(layer);
    sample.c[n + i] = largest;
    sample.means[i] = mean;
  }
  return sample;
}

/** c of the part of a layer that `part` takes out of its tensors. */
function updateOf(layer: Layer, part: (x: Tensor) => Tensor): Tensor {
  const weights = weightsOf(layer)!;
  const ofM = part(layer.elements["m"]!).mul(weights.m);
  return weights.g === 0 ? ofM : ofM.add(part(layer.g), { alpha: weights.g * layer.gradientScale });
}

/** Mean and largest |c| of a whole layer. */
function sizesOf(layer: Layer): { mean: number; largest: number } {
  const { length } = layer.segment;
  let [sum, largest] = [0, 0];
  for (let from = 0; from < length; from += chunk)
    scope(() =>
      noGrad(() => {
        const sizes = updateOf(layer, (x) => x.narrow(0, from, Math.min(chunk, length - from))).abs();
        sum += sizes.sum().item();
        largest = Math.max(largest, sizes.max().item());
      }),
    );
  return { mean: sum / length, largest };
}
