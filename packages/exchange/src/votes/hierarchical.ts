/**
 * Hosts vote: each host has one vote, the majority of its ranks. So only one copy of the vector leaves a host, for any
 * number of ranks on it.
 *
 *   h_k ← sign(Σ_{ranks of host k} u)      a tie is `tie`
 *   v   ← sign(Σ_k h_k)                    a tie is `tie`
 *
 * That is not the majority of all ranks: a host with many ranks has one vote, as every other host, and minority votes
 * inside a host are lost. With one host, or with one rank on each host, it is the majority. The arrangement is that of
 * ZeRO++ (Wang et al. 2023, https://arxiv.org/abs/2306.10209): inside the hosts, between ranks with the same place in
 * their hosts, inside the hosts again.
 *
 *   1. all-to-all inside     owner l of a host receives its host's signs for part l of the vector. A host has as many
 *                            owners as the smallest host has ranks
 *   2. all-to-all between    the H owners of a part, one on each host, divide it among them and vote on it
 *   3. all-gather between
 *   4. all-to-all inside     the owner sends the part to the other ranks of its host, with the notes
 *
 * `inside: "dense"`: inside a host the ranks send the values themselves in f32, not their signs. So a host votes as the
 * mean of its ranks would, and noise is averaged before values become one bit. With one host, Lion Cub is Lion.
 *
 *   h_k ← sign(Σ_{ranks of host k} c)   added in rank order, in f32; the sign of 0 is that of the ranks' own zeros
 *   1. all-to-all inside                owner l of a host receives its host's c for part l: a reduce-scatter with notes
 *
 * A rank, one of L on its host, owns w of the W words, and w' of these w between the hosts. With `dense` its part has
 * p of the n elements. A rank that owns no part has w = 0 and sends nothing between hosts.
 *
 *                   messages     bytes
 *   inside          2 (L − 1)    8 ((W − w) + (L − 1) w)
 *   inside, dense   2 (L − 1)    4 (n − p) + 8 (L − 1) w
 *   between         2 (H − 1)    8 ((w − w') + (H − 1) w')
 *   held                         the larger of 8 (L − 1) w and 8 (H − 1) w'
 *   held, dense                  the larger of 4 n + 4 (L − 1) p and 8 (H − 1) w'
 */
import { allGatherBytes, allToAllBytes, type Group } from "@terse/collectives";
import { QueuedGroup } from "../collective-queue.ts";
import { costOf } from "../cost.ts";
import { elementsOf, partBytes, partition, parts, signsOf } from "../partition.ts";
import { throwRefusal } from "../refusal.ts";
import { watched } from "../watched.ts";
import { groupsOfHosts, hostLayout, ownedParts } from "./hosts.ts";
import { decide } from "./outcome.ts";
import { ReceivedVotes } from "./received-votes.ts";
import { signOfSumInside } from "./sum-inside.ts";
import { noteOfVotes, type VoteScheme, voteScheme } from "./vote-scheme.ts";

/** Options of `hierarchical`: which ranks share a host, and what they send inside it. */
export interface HierarchicalOptions {
  /** The number of neighbouring ranks that share a host; the last host may have fewer. This or `hosts` is required. */
  readonly ranksPerHost?: number;
  /** The host of every rank, as any whole number. */
  readonly hosts?: readonly number[];
  /** Inside a host the ranks send signs, or ("dense") the values themselves in f32. Signs unless given. */
  readonly inside?: "signs" | "dense";
}

/** Each host has one vote, the majority of its ranks. RangeError where the options name no hosts. */
export function hierarchical({ ranksPerHost, hosts, inside: sends = "signs" }: HierarchicalOptions): VoteScheme {
  if (hosts === undefined && ranksPerHost === undefined)
    throw new RangeError(
      "hierarchical: ranksPerHost is missing; give the number of ranks on a host, or list each rank's host in hosts.",
    );
  if (ranksPerHost !== undefined && !(Number.isSafeInteger(ranksPerHost) && ranksPerHost > 0))
    throw new RangeError(`hierarchical: ranksPerHost is ${ranksPerHost}, and must be a whole number, 1 or more.`);
  const hostOf = hosts ?? ((rank: number) => Math.floor(rank / ranksPerHost!));
  const dense = sends === "dense";
  const splits = new WeakMap<Group, Promise<readonly Group[]>>();
  return voteScheme({
    name: "hierarchical",
    outcomes: ["plus", "minus"],
    dense,

    async carry([u], outcome, context) {
      const { up, scratch } = context;
      const { group } = up;
      await up.begins; // the groups inside and between hosts have no queues of their own
      const { place, owners } = hostLayout(hostOf, group.size, group.rank);
      if (!splits.has(group)) splits.set(group, groupsOfHosts(up, hostOf));
      const { watch } = context;
      const groups = await splits.get(group)!;
      const [inside, between] = groups.map((each) => new QueuedGroup(each, undefined, watch)) as [
        QueuedGroup,
        QueuedGroup?,
      ];
      const n = u!.length;
      const starts = ownedParts(n, owners, inside.size);
      const chunks = parts(u!.wire, starts);
      const mine = elementsOf(n, starts, place);
      const own = chunks[place]!;
      const nothing = own.subarray(0, 0);

      let refused = false;
      const note = () => noteOfVotes(u!, context);
      const read = (notes: readonly number[]) => {
        refused ||= notes.some((other) => other !== 0);
      };
      if (dense) {
        const zero = u!.zero ?? (outcome === "minus" ? "minus" : "plus");
        const { notes, finite } = await signOfSumInside(inside, u!, starts, own, { zero, scratch, note, watch });
        read(notes);
        refused ||= !finite;
      } else {
        u!.fill();
        using received = new ReceivedVotes(own, mine, inside, 1, scratch);
        read(await inside.allToAll(chunks.with(place, nothing), received.incoming, { note: note() }));
        watched(watch, "decode", () => decide(outcome, [signsOf(own, mine)], received.votes, mine));
      }
      if (between) {
        const among = partition(mine, between.size);
        const pieces = parts(own, among);
        const piece = pieces[between.rank]!;
        const elements = elementsOf(mine, among, between.rank);
        using received = new ReceivedVotes(piece, elements, between, 1, scratch);
        const outgoing = pieces.with(between.rank, nothing);
        read(await between.allToAll(outgoing, received.incoming, { note: Number(refused) }));
        watched(watch, "decode", () => decide(outcome, [signsOf(piece, elements)], received.votes, elements));
        await between.allGather(pieces);
      }
      const outgoing = chunks.map((_, r) => (r === place ? nothing : own));
      read(await inside.allToAll(outgoing, chunks.with(place, nothing), { note: Number(refused) }));
      // All ranks know of a refusal by now, and exchange the notes to name the rank.
      if (refused) await throwRefusal(up, note());
    },

    cost(n, ranks, rank) {
      const { place, owners, ranksHere, hosts: H, host } = hostLayout(hostOf, ranks, rank);
      const starts = ownedParts(n, owners, ranksHere);
      const sizes = partBytes(starts);
      const up = dense ? sizes.map((_, r) => 4 * elementsOf(n, starts, r)) : sizes;
      const down = sizes.map(() => sizes[place]!);
      const inside = [allToAllBytes(up, place), allToAllBytes(down, place)];
      const peakBytes = (dense ? 4 * n : 0) + (ranksHere - 1) * up[place]!;
      if (place >= owners) return costOf(inside, peakBytes);
      const pieces = partBytes(partition(elementsOf(n, starts, place), H));
      const between = [allToAllBytes(pieces, host), allGatherBytes(pieces, host)];
      return costOf([...inside, ...between], Math.max(peakBytes, (H - 1) * pieces[host]!));
    },

    splits,
  });
}
