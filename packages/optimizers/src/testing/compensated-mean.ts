/**
 * For tests: the error-compensated mean of 1-bit Adam and 1-bit LAMB, plainly in float64, on the parameters of
 * optimizer-contract.ts.
 */
import { ownedRange } from "@terse/exchange";
import { layerLengths, layerRanges } from "./optimizer-contract.ts";

/** In the arena every parameter is followed by a pad, up to the next multiple of 64 elements. */
const pads = layerLengths.map((length) => (64 - (length % 64)) % 64);
const arenaLength = layerLengths.reduce((sum, length, k) => sum + length + pads[k]!, 0);

/**
 * `perLayer`: each layer has a scale of its own; otherwise all of them share one. Elements that are 0 in `variance` are
 * not sent.
 */
export function compensatedMean(ranks: number, { perLayer }: { perLayer: boolean }) {
  const n = layerLengths.reduce((a, b) => a + b);
  const workerErrors = Array.from({ length: ranks }, () => new Array<number>(n).fill(0));
  const serverError = new Array<number>(n).fill(0);
  const groups: number[][] = perLayer ? layerRanges().map(([begin, end]) => indices(begin, end)) : [indices(0, n)];
  const owner = perLayer ? ownersWithin(ranks) : ownersOfArena(ranks);

  /** x becomes its error-compensated mean over the ranks; the errors keep the rest. */
  return (xs: readonly number[][], variance: readonly number[]): number[] => {
    const sending = groups.map((group) => group.filter((i) => variance[i]! > 0));
    const sent = xs.map((x, r) => compress(x, workerErrors[r]!, sending));
    const mean = sent[0]!.map((_, i) => sent.reduce((sum, of) => sum + of[i]!, 0) / ranks);
    if (ranks === 1) return mean;
    const owned = sending.flatMap((group) => Object.values(Object.groupBy(group, (i) => owner[i]!)) as number[][]);
    return compress(mean, serverError, owned);
  };
}

/**
 * What brings each layer's momentum to the mean size of the layers, for each element: Appendix A.5.2 of Li et al. 2021,
 * with size √mean m².
 */
export function momentumFactors(m: readonly number[]): number[] {
  const sizes = layerRanges().map(([begin, end]) =>
    Math.sqrt(m.slice(begin, end).reduce((sum, value) => sum + value ** 2, 0) / (end - begin)),
  );
  const united = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
  return layerRanges().flatMap(([begin, end], l) => new Array<number>(end - begin).fill(united / sizes[l]!));
}

/** e ← e + x, and sign(e) √mean(e²) of each group leaves e. */
function compress(x: readonly number[], e: number[], groups: readonly number[][]): number[] {
  const sent = new Array<number>(x.length).fill(0);
  for (const group of groups) {
    for (const i of group) e[i] = e[i]! + x[i]!;
    const scale = Math.sqrt(group.reduce((sum, i) => sum + e[i]! ** 2, 0) / group.length);
    for (const i of group) {
      sent[i] = e[i]! >= 0 ? scale : -scale;
      e[i] = e[i]! - sent[i]!;
    }
  }
  return sent;
}

/** The rank that owns each element, where the ranks share the arena, pads included. */
function ownersOfArena(ranks: number): number[] {
  const places = layerLengths.flatMap((length, k) => {
    const before = layerLengths.slice(0, k).reduce((sum, each, j) => sum + each + pads[j]!, 0);
    return indices(before, before + length);
  });
  return places.map((place) => ownerOf(place, arenaLength, ranks));
}

/** The owner of each element, where the ranks share each layer. */
const ownersWithin = (ranks: number): number[] =>
  layerLengths.flatMap((length) => indices(0, length).map((place) => ownerOf(place, length, ranks)));

function ownerOf(place: number, n: number, ranks: number): number {
  return Array.from({ length: ranks }, (_, r) => ownedRange(n, ranks, r)[1]).findIndex((end) => place < end);
}

const indices = (begin: number, end: number): number[] => Array.from({ length: end - begin }, (_, i) => begin + i);
