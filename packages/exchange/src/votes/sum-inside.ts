import { NotFiniteError, sign } from "@terse/codecs";
import type { QueuedGroup } from "../collective-queue.ts";
import type { PackedBits } from "../packed-bits.ts";
import { signsOf } from "../partition.ts";
import type { Scratch } from "../scratch.ts";
import type { Watch } from "../watch.ts";
import { watched } from "../watched.ts";

/** own ← the signs of the sum over the ranks of this host, for the part that this rank owns. */
export async function signOfSumInside(
  inside: QueuedGroup,
  u: PackedBits,
  starts: readonly number[],
  own: Uint8Array,
  {
    zero,
    scratch,
    note,
    watch,
  }: { zero: "plus" | "minus"; scratch: Scratch; note: () => number; watch: Watch | undefined },
): Promise<{ notes: readonly number[]; finite: boolean }> {
  const { rank, size } = inside;
  using values = scratch.loan(4 * u.length);
  watched(watch, "encode", () => u.values(values.floats));
  const parts = starts.slice(1).map((end, r) => values.floats.subarray(64 * starts[r]!, Math.min(64 * end, u.length)));
  const mine = parts[rank]!;
  const nothing = mine.subarray(0, 0);
  using others = scratch.loan((size - 1) * mine.byteLength);
  const at = (r: number) => mine.length * (r < rank ? r : r - 1);
  const incoming = parts.map((_, r) => (r === rank ? nothing : others.floats.subarray(at(r), at(r) + mine.length)));
  const notes = await inside.allToAll(parts.with(rank, nothing), incoming, { note: note() });

  // Every owner adds in the order of the ranks, so the sum does not depend on the cuts of the vector.
  const [sum, ...more] = incoming.with(rank, mine);
  try {
    watched(watch, "decode", () => {
      for (const one of more) for (let i = 0; i < one.length; i++) sum![i]! += one[i]!;
      sign.encode(signsOf(own, mine.length), sum!, { zero });
    });
    return { notes, finite: true };
  } catch (error) {
    if (!(error instanceof NotFiniteError)) throw error;
    return { notes, finite: false };
  }
}
