// One long loop on several threads. For kernels that run at memory speed: one core reaches a part of what the memory can.
#ifndef TERSE_PARALLEL_H
#define TERSE_PARALLEL_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

enum { TERSE_PARALLEL_MOST = 256 };  // parts of one loop

// How many threads share a loop from now on, the caller's included; 1 at first. Threads start when they are first needed, wait
// asleep, and end with the process. Any thread may call this; loops under way are not touched.
void terse_parallel_use(unsigned threads);

// Calls part(context, begin, end) for ranges that cover [0, n), each begin a multiple of `cut`; returns when all have ended. Short
// loops, and loops that are asked for while another is shared out, run on the caller's thread alone.
void terse_parallel(size_t n, size_t cut, void (*part)(void *context, size_t begin, size_t end), void *context);

#ifdef __cplusplus
}
#endif
#endif
