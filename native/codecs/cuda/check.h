// The checks that run both emulated and on a GPU.
#ifndef TERSE_CODECS_CUDA_CHECK_H
#define TERSE_CODECS_CUDA_CHECK_H
#include "terse/codecs_cuda.h"

// 0 where all is well. Of all codecs, or of those that are named. Everything is every length with every kind of numbers: for a GPU. The
// emulator, which takes a minute for that, has every pair of them (configuration and length, configuration and kind, length and kind), and
// for each configuration one of the lengths beyond 64 Ki.
int check_all(char **names, int count, bool everything);

// The golden vectors on standard input; ../check_vectors.h has the lines.
int check_golden();

// Lengths about 1 Mi, odd ones: for a GPU, the emulator would take minutes for each.
int check_long();

// The reductions of all scale groups, in device memory.
terse_codec_status reduce_for_check(double *magnitudes, double *squares, float *most, const float *x, size_t n, const terse_codec_options *options, void *workspace);
size_t workspace_for_check(size_t n, const terse_codec_options *options);

// *before = the count before a tile that has `own` elements, from the states of the tiles before it.
terse_codec_status look_back_for_check(unsigned long long *before, unsigned long long *states, size_t tile, unsigned long long own);

#endif
