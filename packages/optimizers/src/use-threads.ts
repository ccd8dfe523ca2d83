import { useThreads as useCodecThreads } from "@terse/codecs";
import { useThreads as useKernelThreads } from "@terse/native-optimizers";

/**
 * Sets how many threads of this process share each kernel of an optimizer and of a codec, the caller's included; 1 at
 * the start. The bits do not depend on it. A rank that has several cores calls it with `numThreads()`, so that kernels
 * take as many as operators. Throws a RangeError unless `threads` is a whole number, 1 or more.
 */
export function useThreads(threads: number): void {
  useCodecThreads(threads);
  useKernelThreads(threads);
}
