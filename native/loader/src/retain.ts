import type { BufferLike, RetainedBuffer } from "./buffer-like.ts";

/** Buffers that a call uses until it calls `release`. */
export interface Retained<T> extends Disposable {
  readonly buffers: T;
  release(): void;
}

/**
 * Returns the buffers, and keeps the memory of those that can retain it until `release`, even if the objects are
 * disposed. Typed arrays and buffers without `retain` are returned as they are.
 */
export function retain<const T extends readonly (BufferLike | undefined)[]>(...buffers: T): Retained<T> {
  const retained: RetainedBuffer[] = [];
  const release = () => {
    for (const buffer of retained.splice(0)) buffer.release();
  };
  try {
    const same = buffers.map((x) => {
      if (x === undefined || ArrayBuffer.isView(x) || x.retain === undefined) return x;
      const buffer = x.retain();
      retained.push(buffer);
      return buffer;
    });
    return { buffers: same as unknown as T, release, [Symbol.dispose]: release };
  } catch (error) {
    release();
    throw error;
  }
}
