/**
 * The mean of sparse vectors: each rank sends only a few elements of its vector, to all other ranks. DeMo, Peng,
 * Quesnelle and Kingma 2024, Algorithm 1, https://arxiv.org/abs/2411.19870; Deep Gradient Compression, Lin et al. 2018,
 * https://arxiv.org/abs/1712.01887; Aji and Heafield 2017, "Sparse Communication for Distributed Gradient Descent",
 * https://arxiv.org/abs/1704.05021
 *
 *   e ← β e + x,  a = C(e),  e ← e − a      with an error; otherwise a = C(x)    C: top-k, dct-top-k, or any codec
 *   into += (1/P) Σ a                       on every rank, in rank order; without `into` x ← (1/P) Σ a
 *     or, over senders, each kept element (for DeMo, each cosine) by the number of ranks that sent it instead of P. The
 *     reference code of DeMo does this; its values are then up to P times as large, where few ranks keep the same
 *     element
 *
 * β is `decay`, 1 unless given; SparseLoCo, Sarfi et al. 2025, https://arxiv.org/abs/2508.15706, has 0.95.
 *
 * Sums of sparse vectors become denser with every rank, so nothing is summed on the way. The scheme saves bytes if
 * P − 1 wires are smaller than a dense mean: for top-k about k (P − 1)(32 + log2 n) bits against 64 n (P − 1)/P.
 *
 * The wires go as an all-to-all with the same wire for every rank, whose headers carry refusals. With wires of b bytes,
 * a rank
 *
 *   sends   P − 1 messages, (P − 1) b bytes
 *   holds   P b bytes; over senders 2 more for each element of a chunk of the codec (for top-k, of the vector)
 */
import { type Codec, divideBySenders, type Floats, type KeptElements } from "@terse/codecs";
import { allGatherBytes } from "@terse/collectives";
import { checkDecay, checkLength, checkOptions, type FeedbackOptions, ownedChunks } from "../by-owners/owned-chunks.ts";
import { noBytes, Wires } from "../by-owners/wires.ts";
import { type Cost, costOf } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { readOrAbort } from "../refusal.ts";
import { runStages, type Stage } from "../run-stages.ts";
import type { Scratch } from "../scratch.ts";
import { watched } from "../watched.ts";
import { type Kind, nothing } from "./kind.ts";

export interface SparseOptions extends FeedbackOptions {
  /** The mean is added to these n floats; it replaces x unless they are given. */
  readonly into?: Floats | undefined;
  /** topK, dctTopK, or any other codec; the same on every rank. */
  readonly codec: Codec;
  /**
   * n floats, 0 at first: the rest that this rank has not sent yet. Without it the rest is lost, unless the caller
   * keeps it.
   */
  readonly error?: Floats | undefined;
  /**
   * What a sum is divided by: all ranks, or the ranks that sent this element. "senders" only for dctTopK, and topK with
   * values f32; "ranks" unless given.
   */
  readonly over?: Over | undefined;
}

export type Over = "ranks" | "senders";

interface Part {
  readonly x: Floats;
  readonly options: SparseOptions;
}

export interface SparseMessage {
  readonly kind: "sparse";
  readonly n: number;
  readonly codec: Codec;
  readonly over?: Over | undefined;
}

/** into += the mean over ranks of the elements that each sends, or x ← it. */
export const sparse: Kind<Floats, SparseOptions, Part, void, SparseMessage> = {
  name: "sparse",
  memory: "replaced",
  ofCodec: ["into", "error"],
  ask(x, options) {
    check(x, options);
    return { x, options };
  },
  carry,
  result: nothing,
  cost: (messages, ranks, rank) => messages.map(({ n, codec, over }) => costOfOne(n, ranks, rank, codec, over)),
};

/** Several vectors in one message. */
async function carry(requests: readonly Part[], context: ExchangeContext): Promise<void> {
  const { up, rank, size, watch } = context;
  const sizes = requests.map(({ x, options }) => new Array<number>(size).fill(wireBytes(options.codec, x.length)));
  using wires = new Wires(context.scratch, size, sizes);
  wires.take();
  const own = wires.byRank[rank]!;
  const toAll = wires.byRank.map((_, r) => (r === rank ? noBytes : own));
  const stage: Stage = {
    on: "up",
    encode() {
      for (const [i, { x, options }] of requests.entries()) encode(options, x, wires.of(i)[rank]!, rank);
    },
    call: (group, note) => group.allToAll(toAll, wires.except(rank), { note }),
  };
  await runStages([stage], context);
  const read = () => {
    for (const [i, { x, options }] of requests.entries()) {
      const { codec, into, over = "ranks" } = options;
      const arrived = wires.of(i).filter((wire) => wire.length > 0);
      if (over === "senders") shareAmongSenders(arrived, codec.kept!(x.length), context.scratch);
      const call = { scale: over === "senders" ? 1 : 1 / size, ...maskOption(options) };
      for (const [r, wire] of arrived.entries())
        if (r > 0 || into) codec.decodeAdd(into ?? x, wire, call);
        else codec.decode(x, wire, call);
    }
  };
  readOrAbort(up.group, () => watched(watch, "decode", read));
}

/** Divides each kept value by the number of ranks that sent the same element. */
function shareAmongSenders(wires: readonly Uint8Array[], chunks: readonly KeptElements[], scratch: Scratch): void {
  using loan = scratch.loan(countBytes(chunks));
  const counts = new Uint16Array(loan.bytes.buffer, loan.bytes.byteOffset, loan.bytes.length / 2);
  for (const chunk of chunks) divideBySenders(wires, chunk, counts);
}

const countBytes = (chunks: readonly KeptElements[]): number =>
  2 * chunks.reduce((most, { length }) => Math.max(most, length), 0);

/** RangeError if the lengths of x and the other vectors differ, or the codec cannot write x. */
function check(x: Floats, options: SparseOptions): void {
  checkOptions("sparse", options.codec, x.length, options);
  if (options.into) checkLength("sparse", "into", options.into, x.length, "as x has");
  if (options.error) checkLength("sparse", "error", options.error, x.length, "as x has");
  checkDecay("sparse", options.decay);
  if (options.decay !== undefined && !options.error)
    throw new TypeError(
      "sparse: decay is given, and there is no error that it could shrink: give error, or leave it out.",
    );
  wireBytes(options.codec, x.length); // throws if the codec would keep more elements than x has
  const { values = "f32" } = options.codec.parameters;
  if (options.over === "senders" && values !== "f32")
    throw new RangeError(
      `sparse: over is senders, and values of ${values} cannot be divided where they lie: take values f32, or over: ranks.`,
    );
  if (options.over === "senders" && !options.codec.kept)
    throw new RangeError(
      `sparse: over is senders, and ${options.codec.name} sends every element: take top-k or dct-top-k, or over: ranks.`,
    );
}

function costOfOne(n: number, ranks: number, rank: number, codec: Codec, over: Over = "ranks"): Cost {
  const bytes = wireBytes(codec, n);
  const counts = over === "senders" ? countBytes(codec.kept!(n)) : 0;
  return costOf([allGatherBytes(new Array<number>(ranks).fill(bytes), rank)], ranks * bytes + counts);
}

const wireBytes = (codec: Codec, n: number): number => (n === 0 ? 0 : codec.wireBytes(n));

const maskOption = ({ codec, hold }: SparseOptions) => (hold && codec.takes.hold ? { hold } : {});

function encode(options: SparseOptions, x: Floats, wire: Uint8Array, rank: number): void {
  if (x.length === 0) return;
  const { codec, error, decay } = options;
  const call: object = ownedChunks(codec, x.length, 1).call(options, rank);
  if (error) codec.encodeWithFeedback(wire, x, error, { ...call, decay });
  else codec.encode(wire, x, call);
}
