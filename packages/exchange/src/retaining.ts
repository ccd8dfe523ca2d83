import { type BufferLike, retain } from "@terse/collectives";

/**
 * Runs `use` with the same vector and options. The memory of `x`, and of every buffer among the options, stays until
 * the promise settles, even if a tensor is disposed meanwhile.
 */
export async function retaining<X extends BufferLike, O extends object, R>(
  x: X,
  options: O,
  use: (x: X, options: O) => Promise<R>,
): Promise<R> {
  const buffers = Object.entries(options).filter(([, value]) => isNativeBuffer(value)) as [string, BufferLike][];
  using retained = retain(x, ...buffers.map(([, buffer]) => buffer));
  const [same, ...others] = retained.buffers;
  const kept = Object.fromEntries(buffers.map(([name], i) => [name, others[i]]));
  return await use(same as X, { ...options, ...kept });
}

/** Whether an option is memory behind a pointer. */
export const isNativeBuffer = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !ArrayBuffer.isView(value) && "pointer" in value;
