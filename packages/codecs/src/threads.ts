import { NativeMissingError, useThreads as nativeThreads } from "@terse/native-codecs";

/**
 * Sets how many threads, the caller's included, share a long encode or decodeAdd; 1 at the start. The bytes do not
 * depend on it. Top-k's selection and votes use one thread. Without the native addon everything does.
 */
export function useThreads(threads: number): void {
  if (!Number.isSafeInteger(threads) || threads < 1)
    throw new RangeError(`useThreads: threads is ${threads}, and must be a whole number, 1 or more.`);
  try {
    nativeThreads(threads);
  } catch (error) {
    if (!(error instanceof NativeMissingError)) throw error;
  }
}
