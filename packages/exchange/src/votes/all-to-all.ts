/**
 * Every rank counts a part of the vector. Ishikawa et al. 2024, §3.1 "1-bit compressed allreduce",
 * https://arxiv.org/abs/2411.16462
 *
 *   1. all-to-all    every rank receives all ranks' signs for the words that it owns
 *   2. vote          it counts them in the packed domain
 *   3. all-gather    and sends the outcome to all ranks
 *
 * Two ranks exchange all their signs, and both count all of them: for a majority that takes as many bytes, in one
 * message instead of two.
 *
 * Long vectors are sent in chunks, and the work on them overlaps: while chunk k is on the wire, chunk k + 1 is encoded,
 * and chunk k − 1 is counted and sent back.
 *
 * For each chunk of W = ⌈n / 64⌉ words, of which it owns w ≈ W / P, and d planes of the outcome, a rank
 *
 *   sends   (1 + d)(P − 1) messages, 8 ((W − w) + d (P − 1) w) bytes; with two ranks 1 message of 8 W bytes, and w = W
 *   holds   the votes on its words of two chunks, 8 (P − 1) w bytes each (8 P w if d > 1), and the outcome's planes
 *           above the first
 */
import { allGatherBytes, allToAllBytes } from "@terse/collectives";
import { costOf } from "../cost.ts";
import { bytesOf } from "../packed-bits.ts";
import { elementsOf, partBytes, partition, parts, signsOf } from "../partition.ts";
import { type Piece, runPipeline } from "../run-stages.ts";
import { settled } from "../settled.ts";
import { decide, planesOf } from "./outcome.ts";
import { ReceivedVotes, receivedVectors } from "./received-votes.ts";
import { noteOfVotes, type VoteScheme, voteScheme } from "./vote-scheme.ts";

export interface AllToAllOptions {
  /**
   * Elements of a chunk, in whole words of 64; by default a sixteenth of the vector, and at least 1 Mi (128 KiB of
   * signs).
   */
  readonly chunk?: number;
}

/** Every rank counts a part of the vector and sends its outcome to all ranks. Ishikawa et al. 2024, §3.1. */
export function allToAll({ chunk }: AllToAllOptions = {}): VoteScheme {
  if (chunk !== undefined && !(Number.isSafeInteger(chunk) && chunk > 0 && chunk % 64 === 0))
    throw new RangeError(
      `all-to-all: chunk is ${chunk}, and must be a multiple of 64 elements; take ${nearestChunk(chunk)}.`,
    );

  return voteScheme({
    name: "all-to-all",

    async carry(planes, outcome, context) {
      const [u] = planes;
      const { rank, size, scratch } = context;
      const returns = size > 2; // two ranks both count everything, and nothing comes back

      /** A chunk goes to the ranks that count it, and its outcome to all. */
      const pieceOf = ({ from, n }: Chunk): Piece => {
        const starts = partition(n, size);
        const chunks = planes.map(({ wire }) => {
          const whole = wire.subarray(from / 8, from / 8 + 8 * starts[size]!);
          return returns ? parts(whole, starts) : [whole, whole];
        }); // [plane][rank]
        const mine = returns ? elementsOf(n, starts, rank) : n;
        u!.fill(from + n);
        const own = chunks[0]![rank]!;
        const received = new ReceivedVotes(own, mine, context, planes.length, scratch);
        const outgoing = received.copied ? chunks[0]! : chunks[0]!.with(rank, own.subarray(0, 0));
        return {
          up: {
            on: "up",
            call: (group, note) =>
              group.allToAll(outgoing, received.incoming, { note: note || noteOfVotes(u!, context) }),
          },
          reduce() {
            const here = chunks.map((of) => signsOf(of[rank]!, mine));
            decide(outcome, here, received.votes, mine);
          },
          ...(returns && { down: (group) => settled(chunks.map((plane) => group.allGather(plane))) }),
          [Symbol.dispose]: () => received[Symbol.dispose](),
        };
      };
      const chunks = pipelineChunks(u!.length, chunk);
      await runPipeline(
        chunks.map((of) => () => pieceOf(of)),
        context,
      );
    },

    cost(n, ranks, rank, outcome) {
      const planes = planesOf(outcome, ranks);
      const chunks = pipelineChunks(n, chunk).map((of) =>
        ranks > 2 ? partBytes(partition(of.n, ranks)) : [bytesOf(of.n), bytesOf(of.n)],
      );
      const operations = chunks.flatMap((sizes) => [
        allToAllBytes(sizes, rank),
        ...Array.from({ length: ranks > 2 ? planes : 0 }, () => allGatherBytes(sizes, rank)),
      ]);
      const chunkBytes = chunks.map((sizes) => receivedVectors(ranks, planes) * sizes[rank]!);
      return costOf(operations, Math.max(...chunkBytes.map((bytes, k) => bytes + (chunkBytes[k + 1] ?? 0))));
    },
  });
}

export interface Chunk {
  readonly from: number;
  readonly n: number;
}

const leastChunk = 2 ** 20;
const mostChunks = 16;

/** The chunks of a vector: at least one, if only an empty one, because its headers carry refusals. */
export function pipelineChunks(n: number, chunk = Math.max(leastChunk, 64 * Math.ceil(n / 64 / mostChunks))): Chunk[] {
  return Array.from({ length: Math.max(1, Math.ceil(n / chunk)) }, (_, k) => ({
    from: k * chunk,
    n: Math.min(chunk, n - k * chunk),
  }));
}

function nearestChunk(chunk: number): number {
  return Number.isFinite(chunk) ? Math.max(64, 64 * Math.round(chunk / 64)) : leastChunk;
}
