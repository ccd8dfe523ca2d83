/** The addon is not built, or cannot be opened here. The message says how to get it. */
export class NativeMissingError extends Error {
  override name = "NativeMissingError";
}
