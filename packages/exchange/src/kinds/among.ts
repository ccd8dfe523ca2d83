/**
 * Exchanges among some of the ranks: along one axis of a mesh. All ranks make the request, each for the group of ranks
 * that it belongs to; the groups share no rank and have the same size. Everything goes through collectives of all
 * ranks, with empty parts for ranks of other groups: so a refusal reaches all ranks, and one order of collectives is
 * enough.
 *
 *   mean       x ← mean over the group of x                  each member owns a part, and sends its mean to the others
 *   reduce     shard ← mean over the group of its shard      x is one shard for each member, in the order of ranks
 *   gather     into ← the shards of all members              in the order of ranks
 *
 * Means are added in rank order in fp64 and rounded once. Groups that average the same numbers get the same bits.
 *
 * By a rank in a group of k, for n elements (of all shards together); messages to other groups are empty:
 *
 *            bytes sent           messages     bytes held, about
 *   mean     2 (k − 1)/k · 4 n    2 (P − 1)    12 n − 4 n/k
 *   reduce   (k − 1)/k · 4 n      P − 1        8 n
 *   gather   (k − 1)/k · 4 n      P − 1        4 n
 */
import type { Floats } from "@terse/codecs";
import { copy, type Group } from "@terse/collectives";
import { byOwners, byOwnersCost, type OwnerScheme } from "../by-owners/by-owners.ts";
import { averageFloats, floatsAt, writeFloats } from "../by-owners/f32-wires.ts";
import { checkLength, sliceOf } from "../by-owners/owned-chunks.ts";
import type { Cost } from "../cost.ts";
import { scratchOf } from "../scratch.ts";
import { type Kind, nothing } from "./kind.ts";

/**
 * The requests of one group of ranks. Results are the same bits on all of its ranks; after a NaN all ranks throw a
 * StepRefusedError.
 */
export interface Among {
  /** x ← mean over the group of x. */
  mean(x: Floats): Promise<void>;
  /** into ← mean over the group of this rank's shard of x, whose shards have the length of `into`. */
  reduce(x: Floats, into: Floats): Promise<void>;
  /** into ← the shards of all members. */
  gather(shard: Floats, into: Floats): Promise<void>;
}

/** What `among` can do, as messages name it. */
export type AmongKind = `${keyof Among} among`;

export interface AmongMessage {
  readonly kind: AmongKind;
  /** Elements of x, or of all shards. */
  readonly n: number;
  /** The ranks of this rank's group. */
  readonly members: readonly number[];
}

interface Request {
  readonly members: readonly number[];
  /** The result of a reduce or a gather. */
  readonly into?: Floats | undefined;
}

type Part = OwnerScheme & { readonly key: string };

/** Requests along another axis, whose members are other ranks, travel in a message of their own. */
const along = (
  what: keyof Among,
  schemeOf: (group: Group, x: Floats, request: Request) => OwnerScheme,
): Kind<Floats, Request, Part, void, AmongMessage> => ({
  name: `${what} among`,
  memory: "stays",
  ask: (x, request, { group }) => ({
    ...schemeOf(group, x, request),
    key: `${what} among ${request.members.join()}`,
  }),
  key: ({ key }) => key,
  carry: byOwners,
  result: nothing,
  cost: (messages, ranks, rank) => messages.map(({ kind, n, members }) => amongCost(kind, n, ranks, rank, members)),
});

export const meanAmong = along("mean", (group, x, { members }) => meanScheme(group, x, members));
export const reduceAmong = along("reduce", (group, x, { members, into }) => reduceScheme(group, x, into!, members));
export const gatherAmong = along("gather", (group, x, { members, into }) => gatherScheme(group, x, into!, members));

/** RangeError unless the members are ranks in ascending order, this one among them. */
export function checkMembers({ rank, size }: Group, members: readonly number[]): void {
  const ascend = members.every((r, i) => Number.isInteger(r) && r >= 0 && r < size && (i === 0 || r > members[i - 1]!));
  if (!ascend || !members.includes(rank))
    throw new RangeError(
      `among: [${members.join(", ")}] is no group of rank ${rank}; give it ranks from 0 to ${size - 1} in ascending order, with ${rank} among them.`,
    );
}

function meanScheme(group: Group, x: Floats, members: readonly number[]): OwnerScheme {
  const starts = startsOf(x.length, members.length);
  const sizes = sizesOf(group.size, members, (i) => starts[i + 1]! - starts[i]!);
  const partOf = (i: number) => sliceOf(x, starts[i]!, starts[i + 1]!);
  return {
    ...{ up: sizes, down: sizes, members },
    encode(outgoing) {
      for (const [i, r] of members.entries()) writeFloats("mean", outgoing[r]!, partOf(i));
    },
    reduce: (incoming, result) => averageFloats(floatsAt(result), ofMembers(incoming, members)),
    handOut(results) {
      for (const [i, r] of members.entries()) if (results[r]!.length > 0) copy(partOf(i), floatsAt(results[r]!));
    },
  };
}

function reduceScheme(group: Group, x: Floats, into: Floats, members: readonly number[]): OwnerScheme {
  const n = into.length;
  checkLength("among reduce", "x", x, members.length * n, `${members.length} shards of ${n}`);
  return {
    up: sizesOf(group.size, members, () => n),
    down: sizesOf(group.size, members, () => 0),
    ...{ members, only: "up" },
    encode(outgoing) {
      for (const [i, r] of members.entries()) writeFloats("reduce", outgoing[r]!, sliceOf(x, i * n, (i + 1) * n));
    },
    reduce(incoming) {
      using mean = scratchOf(group).loan(4 * n);
      averageFloats(mean.floats, ofMembers(incoming, members));
      if (n > 0) copy(into, mean.floats);
    },
    handOut() {},
  };
}

function gatherScheme(group: Group, shard: Floats, into: Floats, members: readonly number[]): OwnerScheme {
  const n = shard.length;
  checkLength("among gather", "into", into, members.length * n, `${members.length} shards of ${n}`);
  return {
    up: sizesOf(group.size, members, () => 0),
    down: sizesOf(group.size, members, () => n),
    ...{ members, only: "down" },
    encode() {},
    reduce(_, result) {
      if (n > 0) copy(floatsAt(result), shard);
    },
    handOut(results) {
      if (n > 0) for (const [i, r] of members.entries()) copy(sliceOf(into, i * n, (i + 1) * n), floatsAt(results[r]!));
    },
  };
}

/** The cost of n elements: of x, or of all shards together. */
export function amongCost(kind: AmongKind, n: number, ranks: number, rank: number, members: readonly number[]): Cost {
  const own = members.indexOf(rank);
  const starts = startsOf(n, members.length);
  const sizes = sizesOf(ranks, members, (i) => starts[i + 1]! - starts[i]!);
  const none = sizesOf(ranks, members, () => 0);
  const mine = 4 * (starts[own + 1]! - starts[own]!);
  if (kind === "mean among") return byOwnersCost(sizes, sizes, rank, { encoding: 0, reducing: 0 }, { members });
  if (kind === "reduce among")
    return byOwnersCost(sizes, none, rank, { encoding: 0, reducing: mine }, { members, only: "up" });
  return byOwnersCost(none, sizes, rank, { encoding: 0, reducing: 0 }, { members, only: "down" });
}

const startsOf = (n: number, parts: number): number[] =>
  Array.from({ length: parts + 1 }, (_, i) => Math.floor((i * n) / parts));

const ofMembers = (wires: readonly Uint8Array[], members: readonly number[]): Uint8Array[] =>
  members.map((r) => wires[r]!);

/** Bytes by rank, from the floats of each member. */
const sizesOf = (ranks: number, members: readonly number[], floats: (member: number) => number): number[] =>
  Array.from({ length: ranks }, (_, r) => (members.includes(r) ? 4 * floats(members.indexOf(r)) : 0));
