/**
 * The payload bytes and messages that a rank sends, in closed form. The counters of every engine but nccl equal these,
 * byte for byte. S: bytes of the whole, n: ranks, r: this rank, c(r): bytes of the part of rank r. A message is one
 * 32-byte header.
 *
 *   all-reduce        2 S − c(r) − c(r + 1)   the ring, one message; (n − 1) S when small, n − 1 messages
 *   reduce-scatter    S − c(r)                the ring, one message; n − 1 messages when small
 *   all-gather        (n − 1) c(r)            n − 1 messages
 *   all-to-all        Σ outgoing − own        n − 1 messages
 *     Not counted: on tcp between machines, the byte with which a receiver lets each long part begin.
 *   broadcast         S per child             a chain when longer than a segment (1 child), else a binomial tree
 *   gather            c(r); the root 0        1 message; the root none
 *   scatter           0; the root S − c(r)    no message; the root n − 1
 *     These three need one more message per rank, a header without payload by which neighbours agree on the root. It is
 *     saved by the rank that sends payload to the next rank anyway: the root, and in a gather the rank before it.
 *   barrier           0                       ⌈log₂ n⌉ messages
 */

/** The payload bytes and messages that a rank sends in one operation. */
export interface Volume {
  readonly bytes: number;
  readonly messages: number;
  /** Where it is not 32 bytes per message. */
  readonly headerBytes?: number;
}

/** The sizes of native/collectives/wire/header.h in bytes, for programs without the addon. */
export const wireSizes = {
  /** The longest part of a payload that is sent at once. */
  segment: 1 << 20,
  /** The longest payload that travels with its header. */
  inline: 8192,
  /** The most that a rank sends in a direct sum, without a ring. */
  smallSum: 1 << 16,
  /** A ring's segments. */
  leastRingSegment: 1 << 16,
  mostRingSegment: 1 << 18,
} as const;

/** Small sums: every rank sends to every other rank, which is one step instead of the ring's 2 n − 2. */
export const isSmallSum = (bytes: number, ranks: number): boolean =>
  bytes <= wireSizes.inline && bytes * (ranks - 1) <= wireSizes.smallSum;

/** The volume of an all-reduce of `length` elements of `elementBytes` each. */
export function allReduceBytes(length: number, elementBytes: number, ranks: number, rank: number): Volume {
  const bytes = length * elementBytes;
  if (ranks === 1) return { bytes: 0, messages: 0 };
  if (isSmallSum(bytes, ranks)) return { bytes: (ranks - 1) * bytes, messages: ranks - 1 };
  const part = (r: number) =>
    (Math.floor((length * (r + 1)) / ranks) - Math.floor((length * r) / ranks)) * elementBytes;
  return { bytes: 2 * bytes - part(rank) - part((rank + 1) % ranks), messages: 1 };
}

/** The volume of a reduce-scatter. `parts[r]`: bytes of the part that rank r gets. */
export function reduceScatterBytes(parts: readonly number[], rank: number): Volume {
  const bytes = parts.reduce((sum, part) => sum + part, 0);
  if (parts.length === 1) return { bytes: 0, messages: 0 };
  return { bytes: bytes - parts[rank]!, messages: isSmallSum(bytes, parts.length) ? parts.length - 1 : 1 };
}

/** The volume of an all-gather. `parts[r]`: bytes that rank r contributes. */
export function allGatherBytes(parts: readonly number[], rank: number): Volume {
  return { bytes: (parts.length - 1) * parts[rank]!, messages: parts.length - 1 };
}

/** The volume of an all-to-all. `outgoing[r]`: bytes for rank r. */
export function allToAllBytes(outgoing: readonly number[], rank: number): Volume {
  const bytes = outgoing.reduce((sum, part, r) => (r === rank ? sum : sum + part), 0);
  return { bytes, messages: outgoing.length - 1 };
}

/** The volume of a broadcast. `bytes`: those of the vector. */
export function broadcastBytes(bytes: number, ranks: number, rank: number, root: number): Volume {
  const place = (rank - root + ranks) % ranks;
  const children = bytes > wireSizes.segment ? (place + 1 < ranks ? 1 : 0) : treeChildren(place, ranks);
  return { bytes: children * bytes, messages: children + agreeing(ranks, rank === root) };
}

/** The volume of a gather. `parts[r]`: bytes that rank r sends to the root. */
export function gatherBytes(parts: readonly number[], rank: number, root: number): Volume {
  const sends = rank === root ? 0 : 1;
  const beforeRoot = (rank + 1) % parts.length === root;
  return { bytes: sends * parts[rank]!, messages: sends + agreeing(parts.length, beforeRoot) };
}

/** The volume of a scatter. `parts[r]`: bytes that the root sends to rank r. */
export function scatterBytes(parts: readonly number[], rank: number, root: number): Volume {
  if (rank !== root) return { bytes: 0, messages: agreeing(parts.length, false) };
  const all = parts.reduce((sum, part) => sum + part, 0);
  return { bytes: all - parts[rank]!, messages: parts.length - 1 };
}

const agreeing = (ranks: number, byPayload: boolean) => (ranks > 1 && !byPayload ? 1 : 0);

/** The volume of a barrier: headers alone. */
export function barrierBytes(ranks: number): Volume {
  return { bytes: 0, messages: Math.ceil(Math.log2(ranks)) };
}

/** Node `place` of a binomial tree hangs under itself without its lowest bit. */
function treeChildren(place: number, ranks: number): number {
  let children = 0;
  for (let bit = 1; place + bit < ranks && (place & bit) === 0; bit *= 2) children++;
  return children;
}
