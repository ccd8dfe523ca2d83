/** The addon is not built, or cannot be opened on this machine. The message says how to build it. */
export class NativeMissingError extends Error {
  override name = "NativeMissingError";
}
