/**
 * The bytes that a rank sends by NCCL, in closed form, because the library has no counters. They are the least that its
 * rings and copies must send, without flags, padding and retransmissions. `native/collectives/engines/nccl/volume.h`
 * has the same forms. S: bytes of the whole, n: ranks, r: this rank, c(r): bytes of the part of rank r, next: r + 1.
 *
 *   all-reduce      2 S − c(r) − c(next)           1 message
 *   reduce-scatter  S − c(r)                       1
 *   all-gather      S − c(next)                    1
 *   all-to-all      Σ outgoing − own               n − 1, and n − 1 header bytes: the notes
 *   broadcast       S; 0 where next is the root    1; 0
 *   gather          c(r); the root 0               1; 0
 *   scatter         the root S − c(r); others 0    n − 1; 0
 *   barrier         0                              1
 */
import type { Volume } from "../bytes.ts";

const nothing: Volume = { bytes: 0, messages: 0 };
const sum = (parts: readonly number[]) => parts.reduce((total, part) => total + part, 0);

/** The bytes that a rank sends in each collective of NCCL: see the head of this file. */
export const ncclBytes = {
  allReduce(length: number, elementBytes: number, ranks: number, rank: number): Volume {
    if (ranks === 1) return nothing;
    const part = (r: number) => Math.floor((length * (r + 1)) / ranks) - Math.floor((length * r) / ranks);
    return { bytes: (2 * length - part(rank) - part((rank + 1) % ranks)) * elementBytes, messages: 1 };
  },
  reduceScatter(parts: readonly number[], rank: number): Volume {
    return parts.length === 1 ? nothing : { bytes: sum(parts) - parts[rank]!, messages: 1 };
  },
  allGather(parts: readonly number[], rank: number): Volume {
    return parts.length === 1 ? nothing : { bytes: sum(parts) - parts[(rank + 1) % parts.length]!, messages: 1 };
  },
  allToAll(outgoing: readonly number[], rank: number): Volume {
    const others = outgoing.length - 1;
    return { bytes: sum(outgoing) - outgoing[rank]!, messages: others, headerBytes: others };
  },
  broadcast(bytes: number, ranks: number, rank: number, root: number): Volume {
    return ranks === 1 || (rank + 1) % ranks === root ? nothing : { bytes, messages: 1 };
  },
  gather(parts: readonly number[], rank: number, root: number): Volume {
    return rank === root ? nothing : { bytes: parts[rank]!, messages: 1 };
  },
  scatter(parts: readonly number[], rank: number, root: number): Volume {
    return rank === root ? { bytes: sum(parts) - parts[rank]!, messages: parts.length - 1 } : nothing;
  },
  barrier(ranks: number): Volume {
    return ranks === 1 ? nothing : { bytes: 0, messages: 1 };
  },
};
