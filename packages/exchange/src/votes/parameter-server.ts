/**
 * One rank counts: every rank sends it all its signs, and it sends the outcome to every rank in turn.
 * Liu et al. 2024, Algorithm 1, https://arxiv.org/abs/2404.00438;
 * the naive server of Ishikawa et al. 2024, Table 1, https://arxiv.org/abs/2411.16462
 *
 * The server is rank 0. For W words and d planes of the outcome:
 *
 *          bytes                      messages
 *   up     each other rank 8 W        P − 1 from each rank, which carry the notes; only those to the server have more
 *   down   the server 8 W d (P − 1)   d (P − 1) from the server, and d bare headers from each other rank (scatter in
 *                                     bytes.ts of @terse/collectives)
 *   held   the server 8 W (P − 1)     of votes (8 W P if d > 1); and all ranks the outcome's planes above the first
 *
 * The server's link carries 8 W (1 + d)(P − 1) bytes, so this scheme does not scale.
 */
import { allToAllBytes, scatterBytes } from "@terse/collectives";
import { costOf } from "../cost.ts";
import { bytesOf } from "../packed-bits.ts";
import { runStages, type Stage } from "../run-stages.ts";
import { settled } from "../settled.ts";
import { decide, planesOf } from "./outcome.ts";
import { ReceivedVotes, receivedVectors } from "./received-votes.ts";
import { noteOfVotes, type VoteScheme, voteScheme } from "./vote-scheme.ts";

const server = 0;

/** Rank 0 counts all votes, and sends the outcome to every rank. Liu et al. 2024, Algorithm 1. */
export function parameterServer(): VoteScheme {
  return voteScheme({
    name: "parameter-server",

    async carry(planes, outcome, context) {
      const [u] = planes;
      const { rank, size, scratch } = context;
      u!.fill();
      const nothing = Array.from({ length: size }, () => u!.wire.subarray(0, 0));
      using received =
        rank === server ? new ReceivedVotes(u!.wire, u!.length, context, planes.length, scratch) : undefined;
      const outgoing = received && !received.copied ? nothing : nothing.with(server, u!.wire);
      const up: Stage = {
        on: "up",
        call: (group, note) =>
          group.allToAll(outgoing, received?.incoming ?? nothing, { note: note || noteOfVotes(u!, context) }),
      };
      const down: Stage = {
        on: "down",
        ...(received && {
          decode() {
            const signs = planes.map((plane) => plane.signs);
            decide(outcome, signs, received.votes, u!.length);
          },
        }),
        async call(group) {
          const scattered = planes.map(({ wire }) => {
            const parts = rank === server ? Array.from({ length: size }, () => wire) : undefined;
            return group.scatter(wire, server, parts);
          });
          await settled(scattered);
          return undefined;
        },
      };
      await runStages([up, down], context);
    },

    cost(n, ranks, rank, outcome) {
      const planes = planesOf(outcome, ranks);
      const plane = bytesOf(n);
      const up = Array.from({ length: ranks }, (_, r) => (r === server && rank !== server ? plane : 0));
      const down = scatterBytes(new Array<number>(ranks).fill(plane), rank, server);
      const peakBytes = rank === server ? receivedVectors(ranks, planes) * plane : 0;
      return costOf([allToAllBytes(up, rank), ...Array.from({ length: planes }, () => down)], peakBytes);
    },
  });
}
