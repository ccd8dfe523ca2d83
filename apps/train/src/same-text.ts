import type { Group } from "@terse/collectives";
import { DataError, type TextData } from "@terse/data";

/** Throws on every rank, naming those that read another text than rank 0: a folder may differ from machine to machine. */
export async function sameText(data: TextData, group: Group): Promise<void> {
  const digests = Array.from({ length: group.size }, () => new Uint8Array(32));
  digests[group.rank] = Uint8Array.from(Buffer.from(data.state().text, "hex"));
  await group.allGather(digests);
  const others = digests.flatMap((digest, rank) => (Buffer.compare(digest, digests[0]!) === 0 ? [] : [rank]));
  if (others.length > 0)
    throw new DataError(
      `Rank ${others.join(", ")} ${others.length > 1 ? "read" : "reads"} another text than rank 0 (${data.source}); give every machine the same files.`,
    );
}
