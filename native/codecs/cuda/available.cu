// Whether the current device runs the kernels of this library: it has code for the device where CUDA can load one of them.
#include "launch.cuh"

__global__ void nothing() {}

terse_codec_status terse_codecs_cuda_available(void) {
    cudaFuncAttributes attributes;
    return terse_cuda_status(cudaFuncGetAttributes(&attributes, nothing));
}
