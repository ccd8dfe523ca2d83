/**
 * Refuses a call that writes over what it reads: lanes would change before they are read, and no number would say so. Views of one
 * buffer are seen here; memory behind pointers is seen by the native library, which refuses the same calls.
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

/** Refuses a view whose memory was transferred away, or has shrunk from under it: it has no elements, and would pass for empty. */
export function refuseGone(where: string, what: string, view: Float32Array | Uint8Array): void {
  if (view.length > 0) return;
  try {
    view.keys(); // which asks no more than whether the view is still there
  } catch {
    throw new TypeError(`${where}: ${what} has lost its memory: its buffer was transferred, or has become too short.`);
  }
}

/** The same memory, from its first byte to its last. */
export const isSame = (a: ArrayBufferView, b: ArrayBufferView): boolean =>
  a.buffer === b.buffer && a.byteOffset === b.byteOffset && a.byteLength === b.byteLength;

const overlap = (a: ArrayBufferView, b: ArrayBufferView): boolean =>
  a.buffer === b.buffer &&
  a.byteLength > 0 &&
  b.byteLength > 0 &&
  a.byteOffset < b.byteOffset + b.byteLength &&
  b.byteOffset < a.byteOffset + a.byteLength;
