// The launch of kernels that work on one element at a time: element i of some arrays changes by element i of these and
// of others.
#ifndef TERSE_ELEMENTWISE_CUH
#define TERSE_ELEMENTWISE_CUH
#include "kernels.cuh"

// 256 threads with 4 elements each: a thread has 4 loads of every array in flight. Neighbouring threads have
// neighbouring elements, so a warp reads and writes whole lines of 128 bytes at any alignment.
constexpr unsigned ELEMENT_THREADS = 256, PER_THREAD = 4, ELEMENTS = ELEMENT_THREADS * PER_THREAD;

// Work has
//   load(i)            what a kernel reads of element i
//   store(i, loaded)   writes it, and returns whether it is finite
template <class Work>
__global__ void __launch_bounds__(ELEMENT_THREADS)
    elementwise_kernel(size_t n, const __grid_constant__ Work work, uint64_t *bad) {
    for (size_t base = (size_t)blockIdx.x * ELEMENTS; base < n; base += (size_t)gridDim.x * ELEMENTS) {
        typename Work::element loaded[PER_THREAD];
        size_t first_bad = SIZE_MAX;
#pragma unroll
        for (unsigned k = 0; k < PER_THREAD; k++) {
            const size_t i = base + k * ELEMENT_THREADS + threadIdx.x;
            if (i < n) loaded[k] = work.load(i);
        }
#pragma unroll
        for (unsigned k = 0; k < PER_THREAD; k++) {
            const size_t i = base + k * ELEMENT_THREADS + threadIdx.x;
            if (i < n && !work.store(i, loaded[k]) && i < first_bad) first_bad = i;
        }
        if (first_bad != SIZE_MAX) refuse(bad, first_bad);
    }
}

// `bad` as in lion.cuh; NULL where every element is accepted.
template <class Work>
cudaError_t launch_elementwise(size_t n, const Work &work, uint64_t *bad, void *stream) {
    return launch_kernel(elementwise_kernel<Work>, divided_up(n, ELEMENTS), ELEMENT_THREADS, stream, n, work, bad);
}

#endif
