/** The same exports where there is no Node: no addon opens, and nothing here imports from `node:`. */
import type { Addon } from "./load-addon.ts";
import { NativeMissingError } from "./native-missing-error.ts";

export type { BufferLike, DType, NativeBuffer, TypedArray } from "./buffer-like.ts";
export type { Addon } from "./load-addon.ts";
export { NativeMissingError } from "./native-missing-error.ts";
export { NotFiniteError } from "./not-finite-error.ts";

export function loadAddon(name: string): Addon {
  throw new NativeMissingError(
    `the native ${name} addon cannot be opened in a browser: only Node opens native libraries.`,
  );
}

/** A browser has no environment variables. */
export const wantedImplementation = (): undefined => undefined;

/** Nobody expects an addon in a browser. */
export const warnOnce = (_message: string): void => {};
