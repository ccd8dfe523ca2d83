import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { availableProcessors, loadAddon } from "@terse/native-loader";
import { checkBuild } from "./check-build.ts";
import { TensorDisposedError, TensorError } from "./errors.ts";
import type { Native } from "./native.ts";

export type { BufferLike, DType, NativeBuffer, RetainedBuffer, TypedArray } from "@terse/native-loader";
export { checkOptions } from "@terse/native-loader";
export { type BuildInfo, checkBuild, readBuildInfo } from "./check-build.ts";
export { TensorDisposedError, TensorError } from "./errors.ts";
export type { Handle, Native, OperatorId, OperatorResult } from "./native.ts";

/** The root folder of this package. */
export const packageRoot = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * The addon: libtorch's dispatcher. It is opened at its first use, not at the import: a launcher or a `--help` knows
 * the models without the quarter of a second and the 100 MB that libtorch costs. Throws NativeMissingError then.
 */
export const native: Native = openedAtFirstUse();

function openedAtFirstUse(): Native {
  // A property that the object does not have is looked up here. Once it has the addon's functions, nothing is.
  const opener = new Proxy({} as Native, { get: (_, key) => Object.assign(native, open())[key as keyof Native] });
  const native: Native = Object.create(opener);
  return native;
}

function open(): Native {
  checkBuild(packageRoot);
  const native = withShortSpin(() => loadAddon("tensor", import.meta.url)) as unknown as Native;
  native.setErrors(TensorError, TensorDisposedError);
  // OpenMP starts a thread for each core that it sees, and knows nothing of a container's quota.
  if (!process.env["OMP_NUM_THREADS"] && availableProcessors() < native.numThreads())
    native.setNumThreads(availableProcessors());
  // process.exit() runs libtorch's destructors without Node's cleanup hooks. No backward may run at that time.
  process.once("exit", () => native.stop());
  return native;
}

/**
 * Shortens the time that libgomp's workers spin between parallel regions from about 15 ms to half a millisecond. On a
 * shared machine the long spin makes a step four times as slow; on an idle machine both are equally fast. libgomp reads
 * the variable when it is loaded. It is removed afterwards, so that child processes do not inherit it.
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
