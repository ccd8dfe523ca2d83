import { NativeMissingError, useThreads as nativeThreads } from "@terse/native-codecs";

/**
 * How many threads share a long encode or decodeAdd from now on, the caller's included; 1 at first. The bytes do not depend on it.
 * top-k's choice, and votes, stay on one thread; so does everything where no addon is built.
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
