/**
 * Hosts vote: inside a host all ranks' votes are counted, and between hosts each host has one vote, the majority of its ranks. So
 * only one copy of the vector leaves a host, whatever the number of ranks on it.
 *
 *   h_k ← sign(Σ_{ranks of host k} u)      a tie is `tie`
 *   v   ← sign(Σ_k h_k)                    a tie is `tie`
 *
 * That is not the majority of all ranks: hosts with many ranks count no more than others, and votes inside a host are forgotten.
 * With one host, or with one rank on each, it is the majority. The arrangement is that of ZeRO++ (Wang et al. 2023,
 * https://arxiv.org/abs/2306.10209): inside, between ranks of the same place in their hosts, inside.
 *
 *   1. all-to-all inside     owner l of a host gets its host's signs for part l of the vector; o owners, the smallest host's ranks
 *   2. all-to-all between    the H owners of a part, one on each host, share it out again and vote on it
 *   3. all-gather between
 *   4. all-to-all inside     the part goes to the host's other ranks, with the notes
 *
 * `inside: "dense"`: inside a host the ranks send, in f32, the values that they would take the signs of. So a host votes as the mean of
 * its ranks would, and their noise is averaged before anything is cut to one bit. One host is Lion itself.
 *
 *   h_k ← sign(Σ_{ranks of host k} c)      added in the order of the ranks, in f32; 0 as the ranks' own zeros
 *   1. all-to-all inside                   owner l of a host gets its host's c for part l: a reduce-scatter that also carries the notes
 *
 * Sent by a rank, W words of which it owns w (w = 0 and nothing between hosts for a rank that owns none), and within the part w' of
 * those between hosts, L ranks on its host: 2 (L − 1) messages, 8 ((W − w) + (L − 1) w) bytes inside; 2 (H − 1) messages,
 * 8 ((w − w') + (H − 1) w') bytes between.
 * Held: the larger of 8 (L − 1) w and 8 (H − 1) w' bytes.
 * Dense, n elements of which it owns p: inside 4 (n − p) + 8 (L − 1) w bytes; held is the larger of 4 n + 4 (L − 1) p and 8 (H − 1) w'.
 */
import { NotFiniteError, sign } from "@terse/codecs";
import { allGatherBytes, allToAllBytes, type Group } from "@terse/collectives";
import type { QueuedGroup } from "../collective-queue.ts";
import { costOf } from "../cost.ts";
import type { PackedBits } from "../packed-bits.ts";
import { elementsOf, partBytes, partition, parts, signsOf } from "../partition.ts";
import { throwRefusal } from "../refusal.ts";
import type { Scratch } from "../scratch.ts";
import { decide } from "./outcome.ts";
import { ReceivedVotes } from "./received-votes.ts";
import { noteOfVotes, type VoteScheme, voteScheme } from "./vote-scheme.ts";

export interface HierarchicalOptions {
  /** The host of every rank, as any whole number; or how many neighbouring ranks share a host (the last one may have fewer). */
  readonly hosts: readonly number[] | number;
  /** What the ranks of one host send each other: signs, or ("dense") the f32 values before their sign is taken. Signs unless given. */
  readonly inside?: "signs" | "dense";
}

export function hierarchical({ hosts, inside: kind = "signs" }: HierarchicalOptions): VoteScheme {
  const dense = kind === "dense";
  const beside = new WeakMap<Group, Promise<readonly Group[]>>();
  return voteScheme({
    name: "hierarchical",
    outcomes: ["plus", "minus"],
    dense,

    async carry([u], outcome, context) {
      const { up, scratch } = context;
      const { group } = up;
      await up.begins; // the groups inside and between have no queues of their own
      const { place, owners } = layoutOf(hosts, group.size, group.rank);
      if (!beside.has(group)) beside.set(group, open(up, hosts));
      const [inside, between] = (await beside.get(group)!) as readonly [Group, Group?];
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
        const { notes, finite } = await signOfSum(inside, u!, starts, own, { zero, scratch, note });
        read(notes);
        refused ||= !finite;
      } else {
        u!.fill();
        using received = new ReceivedVotes(own, mine, inside, 1, scratch);
        read(await inside.allToAll(chunks.with(place, nothing), received.incoming, { note: note() }));
        decide(outcome, [signsOf(own, mine)], received.votes, mine);
      }
      if (between) {
        const among = partition(mine, between.size);
        const pieces = parts(own, among);
        const piece = pieces[between.rank]!;
        const elements = elementsOf(mine, among, between.rank);
        using received = new ReceivedVotes(piece, elements, between, 1, scratch);
        const outgoing = pieces.with(between.rank, nothing);
        read(await between.allToAll(outgoing, received.incoming, { note: Number(refused) }));
        decide(outcome, [signsOf(piece, elements)], received.votes, elements);
        await between.allGather(pieces);
      }
      const outgoing = chunks.map((_, r) => (r === place ? nothing : own));
      read(await inside.allToAll(outgoing, chunks.with(place, nothing), { note: Number(refused) }));
      if (refused) await throwRefusal(up, note()); // all ranks know by now; one more message says which rank refused
    },

    cost(n, ranks, rank) {
      const { place, owners, ranksHere, hosts: H, host } = layoutOf(hosts, ranks, rank);
      const starts = ownedParts(n, owners, ranksHere);
      const sizes = partBytes(starts);
      const up = dense ? sizes.map((_, r) => 4 * elementsOf(n, starts, r)) : sizes;
      const down = sizes.map(() => sizes[place]!);
      const inside = [allToAllBytes(up, place), allToAllBytes(down, place)];
      const held = (dense ? 4 * n : 0) + (ranksHere - 1) * up[place]!;
      if (place >= owners) return costOf(inside, held);
      const pieces = partBytes(partition(elementsOf(n, starts, place), H));
      const between = [allToAllBytes(pieces, host), allGatherBytes(pieces, host)];
      return costOf([...inside, ...between], Math.max(held, (H - 1) * pieces[host]!));
    },

    beside,
  });
}

/** own ← the signs of the sum over the ranks of a host, for the part that this rank owns. */
async function signOfSum(
  inside: Group,
  u: PackedBits,
  starts: readonly number[],
  own: Uint8Array,
  { zero, scratch, note }: { zero: "plus" | "minus"; scratch: Scratch; note: () => number },
): Promise<{ notes: readonly number[]; finite: boolean }> {
  const { rank, size } = inside;
  using values = scratch.loan(4 * u.length);
  u.values(values.floats);
  const parts = starts.slice(1).map((end, r) => values.floats.subarray(64 * starts[r]!, Math.min(64 * end, u.length)));
  const mine = parts[rank]!;
  const nothing = mine.subarray(0, 0);
  using others = scratch.loan((size - 1) * mine.byteLength);
  const at = (r: number) => mine.length * (r < rank ? r : r - 1);
  const incoming = parts.map((_, r) => (r === rank ? nothing : others.floats.subarray(at(r), at(r) + mine.length)));
  const notes = await inside.allToAll(parts.with(rank, nothing), incoming, { note: note() });

  // Added in the order of the ranks by every owner: the sum does not depend on where a vector is cut.
  const [sum, ...more] = incoming.with(rank, mine);
  for (const one of more) for (let i = 0; i < one.length; i++) sum![i]! += one[i]!;
  try {
    sign.encode(signsOf(own, mine.length), sum!, { zero });
    return { notes, finite: true };
  } catch (error) {
    if (!(error instanceof NotFiniteError)) throw error;
    return { notes, finite: false };
  }
}

/** A group of the ranks of this host, and, for a rank that owns a part, one of the owners of the same part on all hosts. */
async function open(group: QueuedGroup, hosts: HierarchicalOptions["hosts"]): Promise<readonly Group[]> {
  const { place, owners, host } = layoutOf(hosts, group.size, group.rank);
  const inside = await group.split(host);
  const between = await group.split(place < owners ? place : undefined, host);
  return between ? [inside!, between] : [inside!];
}

interface Layout {
  readonly host: number; // of this rank, hosts counted in the order of their first ranks
  readonly hosts: number;
  readonly place: number; // of this rank among its host's
  readonly ranksHere: number;
  readonly owners: number; // places whose ranks own a part on every host
}

function layoutOf(hosts: HierarchicalOptions["hosts"], ranks: number, rank: number): Layout {
  if (typeof hosts === "number" && !(Number.isSafeInteger(hosts) && hosts > 0))
    throw new RangeError(`hierarchical: hosts is ${hosts}, and the number of ranks on a host is whole and 1 or more.`);
  if (typeof hosts !== "number" && hosts.length !== ranks)
    throw new RangeError(
      `hierarchical: hosts names the hosts of ${hosts.length} ranks, and there are ${ranks}; give one number a rank.`,
    );
  const hostOf = typeof hosts === "number" ? (r: number) => Math.floor(r / hosts) : (r: number) => hosts[r]!;
  const members = new Map<number, number[]>();
  for (let r = 0; r < ranks; r++) members.set(hostOf(r), [...(members.get(hostOf(r)) ?? []), r]);
  const here = members.get(hostOf(rank))!;
  return {
    host: [...members.keys()].indexOf(hostOf(rank)),
    hosts: members.size,
    place: here.indexOf(rank),
    ranksHere: here.length,
    owners: Math.min(...[...members.values()].map(({ length }) => length)),
  };
}

/** Where the parts of the ranks of one host begin: owners share the vector, the others have none of it. */
function ownedParts(n: number, owners: number, ranksHere: number): number[] {
  const starts = partition(n, owners);
  return [...starts, ...Array.from({ length: ranksHere - owners }, () => starts[owners]!)];
}
