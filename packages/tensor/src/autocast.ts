import { checkOptions, type DType, native } from "@terse/native-tensor";
import { synchronous } from "./synchronous.ts";

/** Options of `autocast`. */
export interface AutocastOptions {
  /** The tensors' type of device; operators on other devices are not changed. */
  deviceType: "cpu" | "cuda";
  dtype?: "bf16" | "f16";
  /** false: the body runs without autocast, even inside another one. */
  enabled?: boolean;
}

/**
 * Runs `body` as torch.autocast does. Matrix products, linear layers and attention compute in `dtype`. Operators that
 * would lose much precision there, such as sums of losses, compute in f32. The others compute in the type of their
 * arguments. libtorch's lists decide. Parameters, their gradients and optimizer state stay f32; a parameter is
 * converted once for the whole body. Call `backward` after it, outside: it computes in the types of forward.
 *
 * `body` must be synchronous, because autocast is a setting of the thread. Throws TypeError if it is async.
 */
export function autocast<T>(options: AutocastOptions, body: () => T extends Promise<unknown> ? never : T): T {
  checkOptions("autocast", options, ["deviceType", "dtype", "enabled"]);
  const { deviceType, dtype = "bf16", enabled = true } = options;
  const before: DType | null = native.enterAutocast(deviceType, enabled ? dtype : null);
  let result: T;
  try {
    result = body();
  } finally {
    native.leaveAutocast(deviceType, before);
  }
  return synchronous(
    result,
    "autocast: the function is async, so it would compute in f32 again after its first await; call autocast around its synchronous parts",
  );
}
