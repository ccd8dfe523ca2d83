import type { Batch, TextBatch } from "@terse/data";

/** Batches of bytes as PyTorch's side reads them: for each row its T tokens and the one after them, a byte each. */
export async function rowsOfBytes(batches: Iterable<Batch> | AsyncIterable<Batch>): Promise<Buffer> {
  const rows: Buffer[] = [];
  for await (using batch of batches) {
    const { tokens, next } = batch as TextBatch;
    const [now, then] = [await tokens.toTypedArray(), await next.toTypedArray()];
    const T = tokens.shape[1]!;
    for (let end = T; end <= now.length; end += T)
      rows.push(Buffer.from([...now.slice(end - T, end), then[end - 1]!].map(Number)));
  }
  return Buffer.concat(rows);
}
