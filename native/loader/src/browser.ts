/** The package's exports for browsers, which cannot open addons. Nothing here imports from `node:`. */

import type { ProcessorLimits } from "./available-processors.ts";
import type { Addon } from "./load-addon.ts";
import { NativeMissingError } from "./native-missing-error.ts";

export type { ProcessorLimits, Quota } from "./available-processors.ts";
export type { BufferLike, DType, NativeBuffer, RetainedBuffer, TypedArray } from "./buffer-like.ts";
export { checkBuffer, elementBytes, refuseGone } from "./check-buffer.ts";
export type { Addon } from "./load-addon.ts";
export { NativeMissingError } from "./native-missing-error.ts";
export { NotFiniteError } from "./not-finite-error.ts";
export { type Retained, retain } from "./retain.ts";

export function loadAddon(name: string): Addon {
  throw new NativeMissingError(
    `The native ${name} addon cannot be opened in a browser: only Node opens native libraries. Use the TypeScript implementation.`,
  );
}

export const cudaLibrary = (name: string): string => loadAddon(name) as never;

/** The cores that the browser tells of. */
export const processorLimits = (): ProcessorLimits => ({
  cores: Array.from({ length: availableProcessors() }, (_, core) => core),
  quotas: [],
});
export const availableProcessors = (): number => globalThis.navigator?.hardwareConcurrency ?? 1;

/** A browser has no environment variables. */
export const wantedImplementation = (): undefined => undefined;

/** Does nothing: a missing addon is no surprise in a browser. */
export const warnOnce = (_message: string): void => {};
