import type { Group } from "@terse/collectives";
import { DataError, type Dataset } from "@terse/data";

/** Throws on every rank, and names the ranks whose data differs from rank 0's: machines may hold different files. */
export async function checkSameData({ fingerprint, source }: Dataset, group: Group): Promise<void> {
  const digests = Array.from({ length: group.size }, () => new Uint8Array(32));
  digests[group.rank] = Uint8Array.from(Buffer.from(fingerprint, "hex"));
  await group.allGather(digests);
  const others = digests.flatMap((digest, rank) => (Buffer.compare(digest, digests[0]!) === 0 ? [] : [rank]));
  if (others.length > 0)
    throw new DataError(
      `Rank ${others.join(", ")} ${others.length > 1 ? "read" : "reads"} other data than rank 0 (${source}); give every machine the same files.`,
    );
}
