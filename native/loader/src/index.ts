export { type Addon, loadAddon, NativeMissingError } from "./load-addon.ts";
export type { DType, Memory, PointerMemory, TypedArray } from "./memory.ts";
export { NotFiniteError } from "./not-finite-error.ts";
