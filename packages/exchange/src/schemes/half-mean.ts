/**
 * The mean of a vector of f32 that travels in 16 bits, bf16 or f16: rounded once on the way up and once on the way down, and added
 * in f32 in between. A ring in 16 bits would round at each of its P − 1 steps.
 *
 *   1. all-to-all    h_r ← round(x_r), to nearest even; every rank gets everybody's h for the part it owns
 *   2. sum           s ← Σ_r h_r · (1/P) in f32, in the order of the ranks
 *   3. all-gather    x ← round(s), the same 16 bits for everybody, the owner included
 *
 * Sent by a rank: 2 (P − 1) messages, 2 ((n − p) + (P − 1) p) bytes, of n elements of which it owns p ≈ n / P: half of f32.
 * Held: 2 n bytes, 2 (P − 1) p of what arrives, and 4 ⌈n / P⌉ of sums.
 */
import { bf16, type Codec, type Floats, f16, NotFiniteError } from "@terse/codecs";
import { allGatherBytes, allToAllBytes, type BufferLike, copy, type Group } from "@terse/collectives";
import { type Cost, costOf } from "../cost.ts";
import { checkNotes, noteOf } from "../refusal.ts";
import { scratchOf } from "../scratch.ts";

const codecs = { bf16, f16 };

/** As `DenseScheme.mean`. One rank keeps its x as it is: nothing travels. */
export async function halfMean(
  group: Group,
  x: BufferLike,
  type: "bf16" | "f16",
  { note = 0, gather = group }: { note?: number; gather?: Group } = {},
): Promise<void> {
  const codec = codecs[type];
  const floats = floatsOf(x);
  const { rank, size } = group;
  if (size === 1) return checkNotes([note]);
  const n = floats.length;
  const starts = startsOf(n, size);
  const own = starts[rank + 1]! - starts[rank]!;
  const scratch = scratchOf(group);
  using halves = scratch.loan(2 * n);
  using others = scratch.loan(2 * (size - 1) * own);
  using sums = scratch.loan(4 * Math.ceil(n / size));
  const parts = Array.from({ length: size }, (_, r) => halves.bytes.subarray(2 * starts[r]!, 2 * starts[r + 1]!));
  const mine = parts[rank]!;
  const nothing = mine.subarray(0, 0);
  const incoming = Array.from({ length: size }, (_, r) => {
    const k = r < rank ? r : r - 1;
    return r === rank ? nothing : others.bytes.subarray(2 * own * k, 2 * own * (k + 1));
  });

  const refused = note || encoded(codec, halves.bytes, floats);
  checkNotes(await group.allToAll(parts.with(rank, nothing), incoming, { note: refused }));

  const sum = sums.floats.subarray(0, own);
  sum.fill(0);
  for (const arrived of incoming.with(rank, mine)) codec.decodeAdd(sum, arrived, { scale: 1 / size });
  codec.encode(mine, sum);
  await gather.allGather(parts);

  const zeros = sums.floats.fill(0);
  for (let r = 0; r < size; r++) {
    const part = slice(floats, starts[r]!, starts[r + 1]!);
    copy(part, zeros.subarray(0, part.length));
    codec.decodeAdd(part, parts[r]!);
  }
}

export function halfMeanCost(n: number, ranks: number, rank: number): Cost {
  if (ranks === 1) return costOf([]);
  const starts = startsOf(n, ranks);
  const sizes = starts.slice(1).map((end, r) => 2 * (end - starts[r]!));
  const held = 2 * n + (ranks - 1) * sizes[rank]! + 4 * Math.ceil(n / ranks);
  return costOf([allToAllBytes(sizes, rank), allGatherBytes(sizes, rank)], held);
}

/** Rank r owns elements [start[r], start[r + 1]). */
function startsOf(n: number, ranks: number): number[] {
  return Array.from({ length: ranks + 1 }, (_, r) => Math.floor((r * n) / ranks));
}

/** Writes x, or returns the note that says why it cannot be written. */
function encoded(codec: Codec<Record<never, never>>, wire: Uint8Array, x: Floats): number {
  try {
    codec.encode(wire, x);
    return 0;
  } catch (error) {
    if (error instanceof NotFiniteError) return noteOf("the gradient is not finite");
    if (error instanceof RangeError) return noteOf("a value is beyond what its codec can write");
    throw error;
  }
}

export function floatsOf(x: BufferLike): Floats {
  if (x instanceof Float32Array || ("pointer" in x && x.dtype === "f32")) return x;
  throw new TypeError("a mean that travels in 8 or 16 bits takes a vector of f32");
}

function slice(x: Floats, from: number, to: number): Floats {
  if (x instanceof Float32Array) return x.subarray(from, to);
  return { pointer: x.pointer + BigInt(4 * from), length: to - from, dtype: x.dtype, device: x.device };
}
