import type { BufferLike } from "@terse/collectives";
import type { Kind } from "./kinds/kind.ts";
import { retainingOnHost } from "./on-host.ts";
import { retaining } from "./retaining.ts";

/**
 * Runs `use` with a vector and options. Their memory stays until it has ended, and is on the host for kinds that ask
 * for that.
 */
export function retained<X, O extends object, R>(
  { memory, ofCodec }: Pick<Kind<X, O, unknown, R, never>, "memory" | "ofCodec">,
  vector: X,
  given: O,
  use: (x: X, options: O) => Promise<R>,
): Promise<R> {
  if (memory === "own") return use(vector, given);
  const body = (x: BufferLike, options: O) => use(x as X, options);
  if (memory === "stays") return retaining(vector as BufferLike, given, body);
  const isReplaced = memory === "replaced" && (given as { into?: unknown }).into === undefined;
  return retainingOnHost(vector as BufferLike, given, body, { replaces: isReplaced, ofCodec });
}
