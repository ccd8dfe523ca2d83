import { openRegular } from "./regular-file.ts";
import type { TensorPlace } from "./safetensors.ts";

const chunkBytes = 1 << 22;

/** Whether two stored tensors are the same: dtype, shape, and every byte. */
export async function haveSameBytes(a: TensorPlace, b: TensorPlace): Promise<boolean> {
  if (a.dtype !== b.dtype || a.shape.join() !== b.shape.join()) return false;
  await using first = await openRegular(a.path);
  await using second = await openRegular(b.path);
  const [of, to] = [Buffer.alloc(chunkBytes), Buffer.alloc(chunkBytes)];
  for (let at = 0; at < a.bytes; ) {
    const count = Math.min(chunkBytes, a.bytes - at);
    const [left, right] = await Promise.all([
      first.read(of, 0, count, a.begin + at),
      second.read(to, 0, count, b.begin + at),
    ]);
    const read = Math.min(left.bytesRead, right.bytesRead);
    if (read === 0 || of.compare(to, 0, read, 0, read) !== 0) return false; // 0: a file was cut short meanwhile
    at += read;
  }
  return true;
}
