import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { loadAddon } from "@terse/native-loader";
import { checkBuild } from "./check-build.ts";
import { TensorDisposedError, TensorError } from "./errors.ts";
import type { Native } from "./native.ts";

export type { BufferLike, DType, NativeBuffer, TypedArray } from "@terse/native-loader";
export { type BuildInfo, checkBuild, readBuildInfo } from "./check-build.ts";
export { TensorDisposedError, TensorError } from "./errors.ts";
export type { Handle, Native, OperatorId, OperatorResult } from "./native.ts";

/** The root of this package: sources lie in src/, published code in dist/. */
export const packageRoot = dirname(dirname(fileURLToPath(import.meta.url)));

checkBuild(packageRoot);

/** The dispatcher of libtorch, opened. */
export const native = withShortSpin(() => loadAddon("tensor", import.meta.url)) as unknown as Native;
native.setErrors(TensorError, TensorDisposedError);

// process.exit() runs libtorch's destructors, and no cleanup hook of Node before them: no backward may be under way then.
process.once("exit", () => native.stop());

/**
 * libgomp lets its workers spin between parallel regions for some 15 ms before they sleep: on a machine that others use too, a
 * step then takes four times as long. Half a millisecond is as fast where one is alone. libgomp reads the variable when it is
 * opened; our own child processes need not see it.
 */
function withShortSpin<T>(open: () => T): T {
  if (process.env["GOMP_SPINCOUNT"] !== undefined || process.env["OMP_WAIT_POLICY"] !== undefined) return open();
  process.env["GOMP_SPINCOUNT"] = "10000";
  try {
    return open();
  } finally {
    delete process.env["GOMP_SPINCOUNT"];
  }
}
