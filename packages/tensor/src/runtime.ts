import { native } from "@terse/native-tensor";

/** Threads of one operator, in forward and in backward. The default is OMP_NUM_THREADS, or else the number of cores. */
export const numThreads = (): number => native.numThreads();
export const setNumThreads = (threads: number): void => native.setNumThreads(threads);

/** The address of a function that runs loops on the operators' threads, for kernels of other addons (`terse_parallel_team`). */
export const threadTeam = (): bigint => native.team();

/** The version, folder and build configuration of the loaded libtorch, and whether its CUDA library is open. */
export const libtorch = (): { version: string; folder: string; configuration: string; cuda: boolean } =>
  native.library();

/**
 * Opens a device, as its first tensor would, and returns its full name. CUDA must be opened before the first backward. Throws TensorError
 * where the device cannot be used.
 */
export const openDevice = (device: string): string => native.openDevice(device);

/** Whether the device multiplies matrices in bf16 several times as fast as in f32: GPUs, and processors with AMX. */
export const multipliesBf16Fast = (device: string): boolean => device !== "cpu" || native.hasAmx();
