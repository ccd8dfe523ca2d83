import { native } from "@terse/native-tensor";

/** Threads inside one operator, of forward and of backward. OMP_NUM_THREADS, else the number of cores, is the default. */
export const numThreads = (): number => native.numThreads();
export const setNumThreads = (threads: number): void => native.setNumThreads(threads);

/** Which libtorch is loaded, from where, and how it was built. */
export const libtorch = (): { version: string; folder: string; configuration: string; cuda: boolean } =>
  native.library();

/** Opens a device before its first tensor; CUDA must be opened before the first backward. Returns its full name. */
export const openDevice = (device: string): string => native.openDevice(device);
