import { native } from "@terse/native-tensor";
import { synchronous } from "./synchronous.ts";

/**
 * Runs `body` without recording for autograd. `body` must be synchronous: recording is a setting of the thread, so
 * after an `await` it would affect other code. Throws TypeError if `body` is async. `backward` ignores the setting.
 */
export function noGrad<T>(body: () => T extends Promise<unknown> ? never : T): T {
  const before = native.setGradEnabled(false);
  let result: T;
  try {
    result = body();
  } finally {
    native.setGradEnabled(before);
  }
  return synchronous(
    result,
    "noGrad: the function is async, so it would record again after its first await; call noGrad around its synchronous parts",
  );
}
