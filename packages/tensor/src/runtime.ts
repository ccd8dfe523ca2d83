import { native } from "@terse/native-tensor";

/**
 * Threads of one operator, in forward and in backward. The default is OMP_NUM_THREADS, or else the usable processors.
 */
export const numThreads = (): number => native.numThreads();
/** Sets the threads of one operator, for the whole process. */
export const setNumThreads = (threads: number): void => native.setNumThreads(threads);

/**
 * The address of a function that runs loops of other addons' kernels on the operators' threads (`terse_parallel_team`).
 */
export const threadTeam = (): bigint => native.team();

/** The version, folder and build configuration of the loaded libtorch, and whether its CUDA library is open. */
export const libtorch = (): { version: string; folder: string; configuration: string; cuda: boolean } =>
  native.library();

/**
 * Opens a device, as its first tensor would, and returns its full name. CUDA must be opened before the first backward.
 * Throws TensorError where the device cannot be used.
 */
export const openDevice = (device: string): string => native.openDevice(device);

/**
 * Which units of a device multiply matrices in bf16: "matrix" is several times as fast as f32 (GPUs, AMX), "vector" is
 * twice as fast (AVX512-BF16); undefined where f32 is as fast.
 */
export function bf16Units(device: string): "matrix" | "vector" | undefined {
  if (device !== "cpu" || native.processorHas("amx_bf16")) return "matrix";
  return native.processorHas("avx512_bf16") ? "vector" : undefined;
}
