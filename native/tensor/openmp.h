// The OpenMP workers of libtorch's operators: how many there are, where they run, and loops of our own on them.
#pragma once
#include <cstdint>
#include <functional>

namespace terse {

// Sets the number of intra-op threads, for the JavaScript thread and the backward threads.
void set_threads(int threads);
// Applies that number to the calling thread, because OpenMP keeps it per thread.
void apply_thread_count();

// Starts the calling thread's team of workers.
void begin_team();
// Ends the calling thread's team. Forward and backward run on two threads, one after the other, and each ends its team
// for the other.
void end_team();

// Calls body(begin, end) for ranges that cover [0, n): one range per intra-op thread, or a single range if the ranges
// would be shorter than `grain`. The body must not throw.
void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

// Calls work(context, part) for each part of [0, parts), each on a thread of the calling thread's team, and returns
// true. Returns false, and calls nothing, if there is no such team of so many. Kernels of other addons get its address
// (terse/parallel.h).
bool run_on_team(unsigned parts, void (*work)(void* context, unsigned part), void* context);

}  // namespace terse
