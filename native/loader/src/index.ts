export type { BufferLike, DType, NativeBuffer, TypedArray } from "./buffer-like.ts";
export { type Addon, loadAddon } from "./load-addon.ts";
export { NativeMissingError } from "./native-missing-error.ts";
export { NotFiniteError } from "./not-finite-error.ts";
export { wantedImplementation } from "./wanted-implementation.ts";
export { warnOnce } from "./warn-once.ts";
