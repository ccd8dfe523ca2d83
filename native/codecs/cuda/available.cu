// Whether the current device can run the kernels of this library: whether CUDA can load one of them.
#include "launch.cuh"

__global__ void nothing() {}

terse_codec_status terse_codecs_cuda_available(void) {
    cudaFuncAttributes attributes;
    return terse_cuda_status(cudaFuncGetAttributes(&attributes, nothing));
}
