/**
 * How well a vote stands for standard Lion, layer by layer. Ishikawa et al. 2024, "Lion Cub", Table 2, Figures 4, 5, 7,
 * 8, B.1 and C.1, https://arxiv.org/abs/2411.16462
 *
 *   c_r     the update of rank r before its sign (update-sample.ts); it votes with sign(c_r), or with a level Q(c_r)
 *   c̄       mean over r of c_r: exactly standard Lion's c at the same θ, because m is linear in g
 *
 *   match   share of elements with sign(Σ Q(c_r)) = sign(c̄) ≠ 0       flip    of those where they are opposite
 *   ties    of those with Σ Q(c_r) = 0, and c̄ ≠ 0                     zeros   of those with c̄ = 0
 *
 * sign(0) is 0 here: an exact 0 is no vote. Shares of the model are means over its layers, weighted by their sizes.
 *
 * Sent to rank 0 by every other rank: 8 bytes for each sampled element, and 8 for each layer.
 */
import { type Codec, l1, linf } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import type { Layer } from "@terse/optimizers";
import { chanceOfTie, quantileOf } from "./agreement.ts";
import type { Measured } from "./measured.ts";
import { countOf, distancesOf, emptySample, sampleOf, type UpdateSample, weightsOf } from "./update-sample.ts";

/** Of the step that has just been taken, on rank 0. Nothing on the others, or where no layer is voted on. */
export async function measureUpdate(group: Group, layers: readonly Layer[], step: number): Promise<Measured> {
  const voting = layers.filter((layer) => weightsOf(layer) !== undefined);
  if (group.size === 1 || voting.length === 0) return { model: {} };
  const distances = distancesOf(voting);
  const mine = await sampleOf(voting, distances);
  const counts = voting.map((layer, i) => countOf(layer, distances[i]!));
  const samples = group.rank === 0 ? Array.from({ length: group.size }, () => emptySample(counts)) : undefined;
  await group.gather(
    mine.all,
    0,
    samples?.map(({ all }) => all),
  );
  if (!samples) return { model: {} };
  const names = voting.map(({ segment: { name } }) => name);
  const lengths = voting.map(({ segment: { length } }) => length);
  const found = compareUpdates(samples, { names, counts, lengths, step });
  return { ...found, bytes: (group.size - 1) * mine.all.byteLength };
}

/** `counts` and `lengths`: the sampled elements and all elements of each layer. */
export function compareUpdates(
  samples: readonly UpdateSample[],
  {
    names,
    counts,
    lengths,
    step,
  }: { names: readonly string[]; counts: readonly number[]; lengths: readonly number[]; step: number },
): Measured {
  const total = sumOf(lengths);
  const overModel = (ofLayers: readonly number[]) => sumOf(ofLayers.map((value, i) => (value * lengths[i]!) / total));
  const ends = counts.map((_, i) => sumOf(counts.slice(0, i + 1)));
  // Of each layer in m. In c they begin one later for each layer before.
  const ranges = counts.map((count, i) => [ends[i]! - count, ends[i]!] as const);
  const sum = sumOfArrays(samples.map(({ c }) => c));
  const sharesOf = (votes: Float64Array | Float32Array) =>
    ranges.map(([begin, end], i) => shares(votes.subarray(begin + i, end + i), sum.subarray(begin + i, end + i)));

  const bySign = sharesOf(sumOfArrays(samples.map(({ c }) => c.map(Math.sign))));
  const byQuantizer = quantizers.map((quantizer) => sharesOf(sumOfLevels(quantizer, samples, counts, step)));
  const of = (key: keyof Shares, all: readonly Shares[]) => overModel(all.map((each) => each[key]));
  const deviations = ranges.map(([begin, end]) => deviation(samples.map(({ m }) => m.subarray(begin, end))));

  return {
    model: {
      "update/match": of("match", bySign),
      "update/flip": of("flip", bySign),
      "update/ties": of("ties", bySign),
      "update/zeros": of("zeros", bySign),
      "update/elements": sumOf(counts),
      "votes/chance_ties": chanceOfTie(samples.length),
      "quantizers/names": quantizers.map(({ name }) => name),
      "quantizers/match": byQuantizer.map((all) => of("match", all)),
      "quantizers/flip": byQuantizer.map((all) => of("flip", all)),
      "quantizers/ties": byQuantizer.map((all) => of("ties", all)),
      "momentum/deviation": overModel(deviations.map(({ mean }) => mean)),
      "momentum/deviation_largest": Math.max(...deviations.map(({ largest }) => largest)),
    },
    layers: new Map(
      names.map((name, i) => {
        const [begin, end] = ranges[i]!;
        const sizes = sizesOf(
          samples.map(({ c, means }) => ({ c: c.subarray(begin + i, end + i + 1), mean: means[i]! })),
        );
        return [
          name,
          {
            ...bySign[i]!,
            ...sizes,
            momentum_deviation: deviations[i]!.mean,
            momentum_deviation_largest: deviations[i]!.largest,
          },
        ];
      }),
    ),
  };
}

interface Shares {
  readonly match: number;
  readonly flip: number;
  readonly ties: number;
  readonly zeros: number;
}

/** `votes`: only their signs count, as of `truth`. */
function shares(votes: Float64Array | Float32Array, truth: Float64Array): Shares {
  let [match, flip, ties, zeros] = [0, 0, 0, 0];
  for (let i = 0; i < truth.length; i++)
    if (truth[i] === 0) zeros++;
    else if (votes[i] === 0) ties++;
    else if (votes[i]! > 0 === truth[i]! > 0) match++;
    else flip++;
  const share = (count: number) => count / truth.length;
  return { match: share(match), flip: share(flip), ties: share(ties), zeros: share(zeros) };
}

interface Quantizer {
  readonly name: string;
  codec(segments: readonly number[]): Codec;
  /** The values of one level, where the codec's own scales would be those of the sample. */
  units?(sample: UpdateSample): Float32Array;
}

const unscaled = true; // as lion-cub-levels.ts sends them: the levels of all ranks have the same weight

/** What Figure 5 compares. Logarithmic levels are added by their values. */
const kinds: Readonly<Record<string, (bits: number) => Omit<Quantizer, "name">>> = {
  l1: (bits) => ({
    codec: (segments) => l1({ bits, unscaled, segments }) as Codec,
    units: ({ means }) => means.map((mean) => (2 * mean) / (2 ** (bits - 1) - 1)),
  }),
  linf: (bits) => ({ codec: (segments) => linf({ bits, unscaled, segments }) as Codec }),
  "linf-without-zero": (bits) => ({
    codec: (segments) => linf({ bits, levels: "without-zero", unscaled, segments }) as Codec,
  }),
  "linf-logarithmic": (bits) => ({ codec: (segments) => linf({ bits, levels: "logarithmic", segments }) as Codec }),
};

const quantizers: readonly Quantizer[] = Object.entries(kinds).flatMap(([name, kind]) =>
  [4, 5, 8].map((bits) => ({ name: `${name} ${bits} bits`, ...kind(bits) })),
);

/** Σ Q(c_r), in the places of c. */
function sumOfLevels(
  quantizer: Quantizer,
  samples: readonly UpdateSample[],
  counts: readonly number[],
  step: number,
): Float32Array {
  const codec = quantizer.codec(counts.map((count) => count + 1)); // the largest is in the sample, so the layer's scale
  const sum = new Float32Array(samples[0]!.c.length);
  const wire = new Uint8Array(codec.wireBytes(sum.length));
  for (const [seed, sample] of samples.entries()) {
    codec.encode(wire, sample.c, codec.takes.random ? { seed, step } : { units: quantizer.units?.(sample) });
    codec.decodeAdd(sum, wire);
  }
  return sum;
}

/** |c| ÷ its mean on that rank and layer, over all ranks; `c` ends with the largest. Nothing where all are 0. */
function sizesOf(ranks: readonly { c: Float32Array; mean: number }[]): Record<string, number> {
  const moving = ranks.filter(({ mean }) => mean > 0);
  if (moving.length === 0) return {};
  const sizes = moving.map(({ c, mean }) => c.map((value) => Math.abs(value) / mean));
  const sorted = Float32Array.from(sizes.flatMap((each) => [...each.subarray(0, -1)])).sort();
  return {
    update_p50: quantileOf(sorted, 0.5),
    update_p90: quantileOf(sorted, 0.9),
    update_p99: quantileOf(sorted, 0.99),
    update_p999: quantileOf(sorted, 0.999),
    update_largest: Math.max(...sizes.map((each) => each.at(-1)!)),
  };
}

/** The standard deviation between the ranks, element by element: its mean, and the largest. */
function deviation(ranks: readonly Float32Array[]): { mean: number; largest: number } {
  const means = sumOfArrays(ranks).map((sum) => sum / ranks.length);
  const all = means.map((mean, i) => Math.sqrt(sumOf(ranks.map((m) => (m[i]! - mean) ** 2)) / ranks.length));
  return { mean: sumOf(all) / all.length, largest: all.reduce((most, each) => Math.max(most, each), 0) };
}

function sumOfArrays(arrays: readonly Float32Array[]): Float64Array {
  const sum = new Float64Array(arrays[0]!.length);
  for (const array of arrays) for (let i = 0; i < sum.length; i++) sum[i]! += array[i]!;
  return sum;
}

const sumOf = (values: Iterable<number>) => {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
};
