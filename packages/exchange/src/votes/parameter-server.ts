/**
 * One rank counts: every rank sends it all its signs, and it sends the outcome to every rank in turn. Liu et al. 2024, Algorithm 1,
 * https://arxiv.org/abs/2404.00438; the naive server of Ishikawa et al. 2024, Table 1, https://arxiv.org/abs/2411.16462
 *
 * The server is rank 0. Sent by a rank: 8 W bytes up; the server d (P − 1) 8 W bytes down. Messages: P − 1 from each rank, which carry
 * the notes (only those to the server have a payload); then d (P − 1) from the server, and d bare headers from each other rank (scatter in
 * bytes.ts of @terse/collectives). The server's link carries (1 + d)(P − 1) 8 W bytes, so this scheme does not scale.
 * Held: by the server (P − 1) 8 W bytes of votes (P 8 W if d > 1); and the outcome's planes above the first.
 */
import { allToAllBytes, scatterBytes } from "@terse/collectives";
import { costOf } from "../cost.ts";
import { bytesOf } from "../packed-bits.ts";
import { checkNotes } from "../refusal.ts";
import { watched } from "../watch.ts";
import { decide, planesOf } from "./outcome.ts";
import { ReceivedVotes, votesHeld } from "./received-votes.ts";
import { noteOfVotes, type VoteScheme, voteScheme } from "./vote-scheme.ts";

const server = 0;

export function parameterServer(): VoteScheme {
  return voteScheme({
    name: "parameter-server",

    async carry(planes, outcome, context) {
      const [u] = planes;
      const { up, down: back, rank, size, scratch } = context;
      u!.fill();
      const note = noteOfVotes(u!, context);
      const nothing = Array.from({ length: size }, () => u!.wire.subarray(0, 0));
      if (rank === server) {
        using received = new ReceivedVotes(u!.wire, u!.length, context, planes.length, scratch);
        const outgoing = received.copied ? nothing.with(rank, u!.wire) : nothing;
        const arrived = up.allToAll(outgoing, received.incoming, { note });
        context.upCalled();
        checkNotes(await arrived);
        const signs = planes.map((plane) => plane.signs);
        watched(context.watch, "decode", () => decide(outcome, signs, received.votes, u!.length));
      } else {
        const arrived = up.allToAll(nothing.with(server, u!.wire), nothing, { note });
        context.upCalled();
        checkNotes(await arrived);
      }

      const down = planes.map(({ wire }) => {
        const parts = rank === server ? Array.from({ length: size }, () => wire) : undefined;
        return back.scatter(wire, server, parts);
      });
      context.allCalled();
      await Promise.allSettled(down);
      await Promise.all(down);
    },

    cost(n, ranks, rank, outcome) {
      const planes = planesOf(outcome, ranks);
      const plane = bytesOf(n);
      const up = Array.from({ length: ranks }, (_, r) => (r === server && rank !== server ? plane : 0));
      const down = scatterBytes(new Array<number>(ranks).fill(plane), rank, server);
      const held = rank === server ? votesHeld(ranks, planes) * plane : 0;
      return costOf([allToAllBytes(up, rank), ...Array.from({ length: planes }, () => down)], held);
    },
  });
}
