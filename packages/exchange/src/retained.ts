import type { BufferLike } from "@terse/collectives";
import { retainingOnHost } from "./on-host.ts";
import { retaining } from "./retaining.ts";

/**
 * Runs `use` with a vector and options. Their memory stays until it has ended, and is on the host for kinds that ask
 * for that.
 */
export function retained<X, O extends object, R>(
  memory: "host" | "stays" | "own",
  vector: X,
  given: O,
  use: (x: X, options: O) => Promise<R>,
): Promise<R> {
  if (memory === "own") return use(vector, given);
  const retain = memory === "host" ? retainingOnHost : retaining;
  return retain(vector as BufferLike, given, (x, options) => use(x as X, options));
}
