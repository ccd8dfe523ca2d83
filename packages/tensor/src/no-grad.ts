import { native } from "@terse/native-tensor";

/**
 * Runs `body` without recording for autograd. Synchronous only: whether autograd records belongs to the thread, so that after an
 * `await` it would be someone else's. `backward` does not care.
 */
export function noGrad<T>(body: () => T extends Promise<unknown> ? never : T): T {
  const before = native.setGradEnabled(false);
  let result: T;
  try {
    result = body();
  } finally {
    native.setGradEnabled(before);
  }
  if (typeof (result as { then?: unknown } | undefined)?.then === "function")
    throw new TypeError(
      "noGrad: the function is async, and would record after its first await; call noGrad around the synchronous parts",
    );
  return result;
}
