/** Options of the engine nccl. */
export interface NcclOptions {
  /**
   * This rank's GPU, as CUDA_VISIBLE_DEVICES numbers them. Default: LOCAL_RANK, or the only one that the process sees.
   */
  device?: number;
  /**
   * The library's file. Default: TERSE_NCCL, else one that this process has loaded already, else `libnccl.so.2` of the
   * system, else the one that pip has installed beside libtorch.
   */
  library?: string;
  /** The NVIDIA driver's file. Default: TERSE_CUDA_DRIVER, else `libcuda.so.1`. */
  driver?: string;
  /**
   * Fields of NCCL's `ncclConfig_t`: `{ maxCTAs: 8, netName: "Socket" }`. A field that is newer than the library is
   * refused. `blocking` cannot be set.
   */
  config?: Readonly<Record<string, number | string>>;
}
