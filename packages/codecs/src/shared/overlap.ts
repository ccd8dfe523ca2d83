/**
 * Refuses a call whose output overlaps an input: elements would change before they are read, without any error. This
 * function sees views of one buffer. The native library checks memory behind pointers, and refuses the same calls.
 */
export function refuseOverlap(
  where: string,
  what: string,
  written: unknown,
  others: Readonly<Record<string, unknown>>,
): void {
  if (!ArrayBuffer.isView(written)) return;
  for (const [name, other] of Object.entries(others)) {
    if (ArrayBuffer.isView(other) && overlap(written, other))
      throw new RangeError(`${where}: ${what} overlaps ${name}: give each its own memory.`);
  }
}

/** Whether two views are the same memory, from its first byte to its last. */
export const isSame = (a: ArrayBufferView, b: ArrayBufferView): boolean =>
  a.buffer === b.buffer && a.byteOffset === b.byteOffset && a.byteLength === b.byteLength;

const overlap = (a: ArrayBufferView, b: ArrayBufferView): boolean =>
  a.buffer === b.buffer &&
  a.byteLength > 0 &&
  b.byteLength > 0 &&
  a.byteOffset < b.byteOffset + b.byteLength &&
  b.byteOffset < a.byteOffset + a.byteLength;
