// One long loop on several threads. For kernels that run at memory speed: one core alone does not reach the memory's bandwidth.
#ifndef TERSE_PARALLEL_H
#define TERSE_PARALLEL_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

enum { TERSE_PARALLEL_MAX_PARTS = 256 };  // parts of one loop

// Sets how many threads share a loop, the caller's included; 1 at the start. Threads are started when they are first needed, sleep
// between loops, and end with the process. Any thread may call this. It does not affect loops that already run.
void terse_parallel_use(unsigned threads);

// Calls part(context, begin, end) for ranges that cover [0, n); each begin is a multiple of `grain`. Returns when all calls have
// returned. The caller's thread runs the whole loop alone if the loop is short, or if another loop has the threads.
void terse_parallel(size_t n, size_t grain, void (*part)(void *context, size_t begin, size_t end), void *context);

#ifdef __cplusplus
}
#endif
#endif
