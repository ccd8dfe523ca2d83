export { availableProcessors, type ProcessorLimits, processorLimits, type Quota } from "./available-processors.ts";
export type { BufferLike, DType, NativeBuffer, RetainedBuffer, TypedArray } from "./buffer-like.ts";
export { checkBuffer, elementBytes, refuseGone } from "./check-buffer.ts";
export { type Addon, cudaLibrary, loadAddon } from "./load-addon.ts";
export { NativeMissingError } from "./native-missing-error.ts";
export { NotFiniteError } from "./not-finite-error.ts";
export { type Retained, retain } from "./retain.ts";
export { wantedImplementation } from "./wanted-implementation.ts";
export { warnOnce } from "./warn-once.ts";
