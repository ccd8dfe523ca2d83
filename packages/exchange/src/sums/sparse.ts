/**
 * The mean of vectors of which each rank sends a few elements only, to all other ranks.
 * DeMo, Peng, Quesnelle and Kingma 2024, Algorithm 1, https://arxiv.org/abs/2411.19870; Deep Gradient Compression, Lin et al. 2018,
 * https://arxiv.org/abs/1712.01887; Aji and Heafield 2017, "Sparse Communication for Distributed Gradient Descent", https://arxiv.org/abs/1704.05021
 *
 *   e ← e + x,  a = C(e),  e ← e − a        with an error; else a = C(x)         C: top-k, dct-top-k, or any codec
 *   into += (1/P) Σ a                       on every rank, in rank order
 *
 * Sums of sparse vectors grow denser with every rank, so nothing is summed on the way. Worth it while (P − 1) wires are smaller than
 * what a dense mean sends: for top-k about k (P − 1)(32 + log2 n) bits against 64 n (P − 1)/P.
 *
 * Sent by a rank: P − 1 messages, (P − 1) b bytes, b the bytes of a wire; as an all-to-all of the same to everybody, whose headers
 * carry refusals. Held: P b bytes.
 */
import type { Codec, Floats } from "@terse/codecs";
import { allGatherBytes, type Group } from "@terse/collectives";
import { type Cost, costOf } from "../cost.ts";
import { type CallOptions, carryOver, type ExchangeContext } from "../exchange-context.ts";
import { checkLength, checkOptions, type EncodeOptions, ownedChunks } from "../owned-chunks.ts";
import { checkNotes, noteOf } from "../refusal.ts";
import { failureOf, readOrAbort, Wires } from "./by-owners.ts";

export interface SparseOptions extends EncodeOptions {
  /** The mean is added to these n floats. */
  readonly into: Floats;
  /** topK, dctTopK, or any other; the same on every rank. */
  readonly codec: Codec;
  /** n floats, 0 at first: what this rank has not sent yet. Without it what is not sent is lost, or kept by the caller. */
  readonly error?: Floats | undefined;
}

export interface SparseRequest {
  readonly x: Floats;
  readonly options: SparseOptions;
}

/** into += the mean over ranks of what each sent of its x, the same bits on every rank. A NaN in x is a refusal. */
export async function sparse(group: Group, x: Floats, options: SparseOptions, call: CallOptions = {}): Promise<void> {
  checkSparse(x, options);
  await carryOver(group, call, (context) => carrySparse([{ x, options }], context));
}

/** Several vectors in one message. */
export async function carrySparse(requests: readonly SparseRequest[], context: ExchangeContext): Promise<void> {
  const { up, rank, size } = context;
  const sizes = requests.map(({ x, options }) => new Array<number>(size).fill(wireBytes(options.codec, x.length)));
  using wires = new Wires(context.scratch, size, sizes);
  const failure = failureOf(() => {
    for (const [i, { x, options }] of requests.entries()) encode(options, x, wires.of(i)[rank]!, rank);
  });
  const note = context.note || noteOf(failure);
  const own = wires.byRank[rank]!;
  const toAll = wires.byRank.map((_, r) => (r === rank ? own.subarray(0, 0) : own));
  const notes = size === 1 ? [note] : up.allToAll(toAll, wires.except(rank), { note });
  context.allCalled();
  checkNotes(await notes);
  readOrAbort(up.group, () => {
    for (const [i, { options }] of requests.entries())
      for (const wire of wires.of(i))
        if (wire.length > 0) options.codec.decodeAdd(options.into, wire, { scale: 1 / size, ...held(options) });
  });
}

/** RangeError where the lengths of x and the other vectors, or the codec, do not fit. */
export function checkSparse(x: Floats, options: SparseOptions): void {
  checkOptions("sparse", options.codec, x.length, options);
  checkLength("sparse", "into", options.into, x.length, "as x has");
  if (options.error) checkLength("sparse", "error", options.error, x.length, "as x has");
  wireBytes(options.codec, x.length); // throws where the codec cannot keep so many elements
}

export function sparseCost(n: number, ranks: number, rank: number, codec: Codec): Cost {
  const bytes = wireBytes(codec, n);
  return costOf([allGatherBytes(new Array<number>(ranks).fill(bytes), rank)], ranks * bytes);
}

const wireBytes = (codec: Codec, n: number): number => (n === 0 ? 0 : codec.wireBytes(n));

const held = ({ codec, hold }: SparseOptions) => (hold && codec.takes.hold ? { hold } : {});

function encode(options: SparseOptions, x: Floats, wire: Uint8Array, rank: number): void {
  if (x.length === 0) return;
  const { codec, error } = options;
  const call = ownedChunks(codec, x.length, 1).call(options, rank);
  if (error) codec.encodeWithFeedback(wire, x, error, call);
  else codec.encode(wire, x, call);
}
