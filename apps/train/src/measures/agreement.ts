/**
 * How far the ranks agree: on their votes, and in their own momenta. Ishikawa et al. 2024, "Lion Cub", Table 2, Figures
 * 4 and 7, https://arxiv.org/abs/2411.16462
 *
 *   c: ranks of P that say plus to an element, of those whose votes are counted together;  C(n) = n (n − 1) / 2 pairs
 *   ties        share of elements with c = P/2
 *   agreement   mean over elements of (C(c) + C(P − c)) / C(P)
 *   drift       √(mean over ranks and elements of (m_r − m̄)²) / √(mean of m̄²),  m̄: the mean over the ranks
 *
 * Sent by a rank: all-reduces of 4 bytes a sampled vote, of 8 a sampled momentum (32 KiB each at most), and of 8 bytes.
 */
import { allReduceBytes, type Group } from "@terse/collectives";
import { keep, noGrad, type Tensor } from "@terse/tensor";
import type { Measured } from "./measured.ts";
import type { VoteSample } from "./vote-sample.ts";

const mostElements = 4096; // of the momenta

/** Of the votes of a step, the same on every rank of `voters`: those whose votes are counted together. */
export async function measureVotes(voters: Group | undefined, votes: VoteSample | undefined): Promise<Measured> {
  const counts = votes?.plus() ?? new Float32Array(0);
  const [ranks, n] = [voters?.size ?? 1, counts.length];
  if (ranks === 1 || n === 0) return { model: {} };
  await voters!.allReduce(counts);
  const model = {
    "votes/ties": sumOf(counts, (c) => Number(2 * c === ranks)) / n,
    "votes/chance_ties": chanceOfTie(ranks),
    "votes/agreement": agreement(counts, ranks),
    "votes/elements": n,
  };
  return { model, bytes: sentByAll(ranks, n, 4) };
}

/** The same on every rank, but for the quantiles of its own momenta. A single rank measures nothing. */
export async function measureMomenta(group: Group, momenta: readonly Tensor[]): Promise<Measured> {
  const { size } = group;
  if (size === 1) return { model: {} };
  const m = await sampled(momenta);
  const n = m.length;
  if (n === 0) return { model: {} };
  const sums = new Float32Array(2 * n);
  sums.set(m.map((value) => Number(value >= 0)));
  sums.set(m, n);
  await group.allReduce(sums);

  const means = sums.subarray(n).map((sum) => sum / size);
  const squares = Float64Array.of(sumOf(m, (value, i) => (value - means[i]!) ** 2));
  await group.allReduce(squares);
  const scale = Math.sqrt(sumOf(means, (value) => value ** 2) / n);
  const drift = Math.sqrt(squares[0]! / (n * size)) / scale;
  const model = scale > 0 && {
    "momentum/drift": drift,
    "momentum/agreement": agreement(sums.subarray(0, n), size),
    "momentum/quantiles": quantilesOf(m),
    "momentum/elements": n,
  };
  return { model: model || {}, bytes: sentByAll(size, sums.length, 4) + sentByAll(size, 1, 8) };
}

/** Bytes that all ranks together send to add up so many elements. */
function sentByAll(ranks: number, length: number, elementBytes: number): number {
  const each = Array.from({ length: ranks }, (_, rank) => allReduceBytes(length, elementBytes, ranks, rank).bytes);
  return each.reduce((sum, bytes) => sum + bytes, 0);
}

/** The share of elements that tie where the ranks' votes have nothing in common: C(P, P/2) / 2^P, 0 for an odd P. */
export function chanceOfTie(ranks: number): number {
  if (ranks % 2 === 1) return 0;
  let chance = 1;
  for (let pair = 1; 2 * pair <= ranks; pair++) chance *= (2 * pair - 1) / (2 * pair);
  return chance;
}

const pairs = (n: number) => (n * (n - 1)) / 2;

/** The share of pairs of ranks that say the same. */
export function agreement(counts: Float32Array, ranks: number): number {
  return sumOf(counts, (c) => pairs(c) + pairs(ranks - c)) / (pairs(ranks) * counts.length);
}

const shares = [0.5, 0.9, 0.99, 0.999, 1];

/** |m| at these shares of its elements, divided by its mean. */
export function quantilesOf(m: Float32Array): number[] {
  const sizes = m.map(Math.abs).sort();
  const mean = sumOf(sizes, (size) => size) / sizes.length;
  return shares.map((share) => quantileOf(sizes, share) / mean);
}

/** Of values in ascending order: so many of them, as a share, are below it. */
export function quantileOf(sorted: Float32Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}

/** Elements of all tensors, at even distances. */
async function sampled(tensors: readonly Tensor[]): Promise<Float32Array> {
  const total = tensors.reduce((sum, { length }) => sum + length, 0);
  const each = Math.max(1, Math.ceil(total / mostElements));
  const taken: Float32Array[] = [];
  for (const tensor of tensors) {
    using some = noGrad(() => keep(tensor.flatten().slice(0, 0, tensor.length, each)));
    taken.push((await some.toTypedArray()) as Float32Array);
  }
  const all = new Float32Array(taken.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const values of taken) {
    all.set(values, at);
    at += values.length;
  }
  return all;
}

function sumOf(values: Float32Array, of: (value: number, i: number) => number): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += of(values[i]!, i);
  return sum;
}
