// One long loop on several threads. For kernels that run at memory speed: one core alone does not reach the memory's
// bandwidth.
#ifndef TERSE_PARALLEL_H
#define TERSE_PARALLEL_H
#include <stdbool.h>
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

enum { TERSE_PARALLEL_MAX_PARTS = 256 };  // parts of one loop

// Sets how many threads share a loop, the caller's included; 1 at the start. Threads are started when they are first
// needed, sleep between loops, and end with the process. Any thread may call this. It does not affect loops that
// already run.
void terse_parallel_use(unsigned threads);

// Threads that wait for the calling thread's work already, such as OpenMP's. Calls work(context, part) for each part of
// [0, parts), each on a thread of its own, and returns true. Returns false, and calls nothing, if the calling thread
// has no team of so many.
typedef bool terse_parallel_team(unsigned parts, void (*work)(void *context, unsigned part), void *context);

// From now on a loop runs on the caller's team if it has one: that team's threads would otherwise spin where the loop's
// own threads run.
void terse_parallel_lend(terse_parallel_team *team);

// Calls part(context, begin, end) for ranges that cover [0, n); each begin is a multiple of `grain`. Returns when all
// calls have returned. The caller's thread runs the whole loop alone if the loop is short, or if another loop has the
// threads.
void terse_parallel(size_t n, size_t grain, void (*part)(void *context, size_t begin, size_t end), void *context);

#ifdef __cplusplus
}
#endif
#endif
