/**
 * One rank counts. The votes climb a binomial tree to it in ⌈log2 P⌉ rounds, and the outcome comes down as a scatter
 * and an all-gather, so that the server sends it about once instead of P − 1 times.
 * Ishikawa et al. 2024, Table 1 "parameter server (efficient)", https://arxiv.org/abs/2411.16462: a gather and a long
 * broadcast of Chan et al. 2007, doi:10.1002/cpe.1206, which cost one and two times (P − 1)/P · N
 *
 * Table 1 counts N for the gather. Here P vectors of N bits reach one server, so its link carries (P − 1) N bits up
 * with any tree. all-to-all.ts avoids that: every rank is the server of one part of the vector.
 *
 * The server is rank 0. The subtree of a rank has s ranks: its lowest set bit, or P − rank if that is less. For W
 * words, of which a rank has w in the scatter, and d planes of the outcome:
 *
 *   up     one message of 8 W s bytes; the server sends none
 *   down   d times a scatter, 8 (W − w) bytes from the server; and an all-to-all, P − 1 messages of 8 w bytes from each
 *          rank, which also carries the notes
 *   held   8 W s bytes of votes if s > 1, the server 8 W (P − 1) (8 W P if d > 1); and the outcome's planes above the
 *          first
 */
import { allToAllBytes, scatterBytes } from "@terse/collectives";
import type { QueuedGroup } from "../collective-queue.ts";
import { type Cost, costOf } from "../cost.ts";
import { bytesOf, type PackedBits } from "../packed-bits.ts";
import { partBytes, partition, parts } from "../partition.ts";
import { runStages, type Stage } from "../run-stages.ts";
import type { Scratch } from "../scratch.ts";
import { settled } from "../settled.ts";
import { watched } from "../watched.ts";
import { decide, planesOf } from "./outcome.ts";
import { noteOfVotes, type VoteScheme, voteScheme } from "./vote-scheme.ts";

const server = 0;

/** Rank 0 counts votes that climb a tree to it, and scatters the outcome. Ishikawa et al. 2024, Table 1. */
export function parameterServerEfficient(): VoteScheme {
  return voteScheme({
    name: "parameter-server-efficient",

    async carry(planes, outcome, context) {
      const [u] = planes;
      const { rank, size, scratch, watch } = context;
      u!.fill();
      const starts = partition(u!.length, size);
      const up: Stage = {
        on: "up",
        inTurn: true,
        async call(group) {
          await climb(group, u!, planes.length, scratch, (votes) => {
            const signs = planes.map((plane) => plane.signs);
            watched(watch, "decode", () => decide(outcome, signs, votes, u!.length));
          });
          return undefined;
        },
      };
      const down: Stage = {
        on: "down",
        async call(group, note) {
          const noted: Promise<number[]>[] = [];
          const all = planes.flatMap(({ wire }) => {
            const chunks = parts(wire, starts);
            const own = chunks[rank]!;
            const nothing = own.subarray(0, 0);
            const outgoing = chunks.map((_, r) => (r === rank ? nothing : own));
            const scattered = group.scatter(own, server, rank === server ? chunks : undefined);
            const notes = note || noteOfVotes(u!, context);
            noted.push(group.allToAll(outgoing, chunks.with(rank, nothing), { note: notes }));
            return [scattered, noted.at(-1)!];
          });
          await settled<unknown>(all);
          return noted[0];
        },
      };
      await runStages([up, down], context);
    },

    cost(n, ranks, rank, outcome): Cost {
      const planes = planesOf(outcome, ranks);
      const plane = bytesOf(n);
      const sizes = partBytes(partition(n, ranks));
      const s = subtree(rank, ranks);
      const up = rank === server ? { bytes: 0, messages: 0 } : { bytes: s * plane, messages: 1 };
      const outgoing = sizes.map(() => sizes[rank]!);
      const down = [scatterBytes(sizes, rank, server), allToAllBytes(outgoing, rank)];
      const planesInMemory = rank === server ? (planes > 1 ? ranks : ranks - 1) : s > 1 ? s : 0;
      return costOf([up, ...Array.from({ length: planes }, () => down).flat()], planesInMemory * plane);
    },
  });
}

/** The number of ranks in a rank's subtree. The parent of a rank is the rank without its lowest set bit. */
function subtree(rank: number, ranks: number): number {
  return rank === server ? ranks : Math.min(rank & -rank, ranks - rank);
}

/** Sends every rank's votes to the server, which passes them to `count`. */
async function climb(
  group: QueuedGroup,
  u: PackedBits,
  planes: number,
  scratch: Scratch,
  count: (votes: Uint8Array[]) => void,
): Promise<void> {
  const { rank, size } = group;
  const s = subtree(rank, size);
  // The server's own votes stay in place, unless an outcome of several planes overwrites them while they are still
  // needed.
  const own = rank === server && planes === 1 ? 0 : 1;
  if (s === 1) return group.send(u.wire, rank - (rank & -rank));

  const plane = u.wire.length;
  using bundle = scratch.loan(plane * (s - 1 + own));
  if (own) bundle.bytes.set(u.wire);
  const arriving: Promise<void>[] = [];
  for (let bit = 1; bit < s; bit *= 2) {
    const from = plane * (bit - 1 + own); // the subtree of rank + bit begins with that rank
    const length = plane * subtree(rank + bit, size);
    arriving.push(group.recv(bundle.bytes.subarray(from, from + length), rank + bit));
  }
  await settled(arriving);
  if (rank !== server) {
    await group.send(bundle.bytes, rank - (rank & -rank)); // awaited here: the bundle is freed at the end of this block
    return;
  }

  const received = Array.from({ length: s - 1 + own }, (_, r) => bundle.bytes.subarray(plane * r, plane * (r + 1)));
  const votes = own ? received : [u.wire, ...received];
  count(votes.map((wire) => wire.subarray(0, Math.ceil(u.length / 8))));
}
