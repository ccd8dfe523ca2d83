/**
 * The mean of vectors over the ranks, sent in their own type by an all-reduce. Patarasuk and Yuan 2009, "Bandwidth
 * optimal all-reduce algorithms for clusters of workstations", doi:10.1016/j.jpdc.2008.09.002
 *
 * Several vectors of one round that are not neighbours in memory are copied into one, so that they are one message.
 *
 * Sent by a rank: one message, streamed in 2 (P − 1) steps, about 2 (P − 1)/P · 4 n bytes; P − 1 messages of 4 n bytes
 * if the vector has at most 8 KiB. Held: 4 n bytes for vectors that are copied.
 */
import { allReduceBytes, type BufferLike, copy } from "@terse/collectives";
import { type Cost, costOf } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { onHost } from "../on-host.ts";
import { runStages, type Stage } from "../run-stages.ts";
import { settled } from "../settled.ts";
import { watched } from "../watched.ts";

/** A value that is not finite on one rank makes the mean not finite on all. */
export function carryMeans(vectors: readonly BufferLike[], context: ExchangeContext): Promise<void> {
  const { size, up } = context;
  if (size === 1) return carryHere(vectors, context); // nothing is sent: the vectors stay where they are
  return onHost(vectors, (here) => carryHere(here, context), up.group.device);
}

async function carryHere(vectors: readonly BufferLike[], context: ExchangeContext): Promise<void> {
  const { size, scratch, watch } = context;
  // An all-reduce has no headers for notes: NaN in the first element stands for this rank's refusal.
  if (context.refusal !== undefined) for (const x of vectors) if (x.length > 0) copy(firstElement(x), notANumber(x));
  if (size === 1) return;
  if (vectors.length === 1 || !vectors.every(isF32OnCpu)) return runStages([reducing(vectors)], context);

  using loan = scratch.loan(4 * vectors.reduce((sum, { length }) => sum + length, 0));
  const joint = loan.floats;
  let at = 0;
  const places = vectors.map(({ length }) => {
    at += length;
    return joint.subarray(at - length, at);
  });
  const encode = () => {
    for (const [i, x] of vectors.entries()) copy(places[i]!, x);
  };
  await runStages([{ ...reducing([joint]), encode }], context);
  watched(watch, "decode", () => {
    for (const [i, x] of vectors.entries()) copy(x, places[i]!);
  });
}

/** A stage of all-reduces, whose headers carry no notes. */
const reducing = (vectors: readonly BufferLike[]): Stage => ({
  on: "up",
  async call(group) {
    await settled(vectors.map((x) => group.allReduce(x, "mean")));
    return undefined;
  },
});

/** The cost of a mean of n elements in f32. */
export function meanCost(n: number, ranks: number, rank: number): Cost {
  return costOf([allReduceBytes(n, 4, ranks, rank)]);
}

/** The cost of several vectors together, with the memory of their copy. */
export function meansCost(lengths: readonly number[], ranks: number, rank: number): Cost {
  const n = lengths.reduce((a, b) => a + b, 0);
  return { ...meanCost(n, ranks, rank), peakBytes: lengths.length > 1 && ranks > 1 ? 4 * n : 0 };
}

const isF32OnCpu = (x: BufferLike) =>
  x instanceof Float32Array || ("pointer" in x && x.dtype === "f32" && x.device === "cpu");

const notANumber = (x: BufferLike): BufferLike =>
  x instanceof Float64Array || ("pointer" in x && x.dtype === "f64")
    ? Float64Array.of(Number.NaN)
    : Float32Array.of(Number.NaN);

const firstElement = (x: BufferLike): BufferLike =>
  "pointer" in x ? { pointer: x.pointer, length: 1, dtype: x.dtype, device: x.device } : x.subarray(0, 1);
