#include "openmp.h"

#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "torch.h"

namespace terse {
namespace {

std::atomic<int> wanted_threads{0};  // 0: set_threads was not called
thread_local bool has_team = false;  // between begin_team and end_team

// A function of GNU's OpenMP, which comes with libtorch; null where another OpenMP runtime is loaded.
template <typename Function>
Function* of_gnu_openmp(const char* name) {
    void* symbol = dlsym(RTLD_DEFAULT, name);
    Dl_info info;
    const bool gnu = symbol && dladdr(symbol, &info) && info.dli_fname && std::strstr(info.dli_fname, "libgomp");
    return reinterpret_cast<Function*>(gnu ? symbol : nullptr);
}

// Calls work(context, number) for each intra-op thread of the calling thread, on that thread. False, and nothing is
// called, if it is the only one.
// All threads or one: when a team changes its size, libgomp ends some workers and starts them again later.
bool on_all_threads(void (*work)(void*, unsigned), void* context) {
    static const auto parallel = of_gnu_openmp<void(void (*)(void*), void*, unsigned, unsigned)>("GOMP_parallel");
    static const auto thread_number = of_gnu_openmp<int()>("omp_get_thread_num");
    static const auto thread_count = of_gnu_openmp<int()>("omp_get_num_threads");
    static const auto in_parallel = of_gnu_openmp<int()>("omp_in_parallel");
    const int threads = at::get_num_threads();
    if (threads < 2 || !parallel || !thread_number || !thread_count || !in_parallel || in_parallel()) return false;
    struct Call {
        int threads;
        void (*work)(void*, unsigned);
        void* context;
    } call{threads, work, context};
    parallel(
        [](void* data) {
            const auto& [threads, work, context] = *static_cast<Call*>(data);
            // By OMP_DYNAMIC and OMP_THREAD_LIMIT there may be fewer threads than were asked for.
            for (int number = thread_number(); number < threads; number += thread_count())
                work(context, static_cast<unsigned>(number));
        },
        &call, static_cast<unsigned>(threads), 0);
    return true;
}

}  // namespace

// While two teams exist, libgomp counts more workers than processors. Its workers then sleep after every parallel
// region instead of spinning until the next: measured, a GPT step of 240 ms takes 280.
void end_team() {
    // Only GNU's OpenMP: in other runtimes this call pauses the teams of all threads.
    has_team = false;
    static const auto pause = of_gnu_openmp<int(int)>("omp_pause_resource_all");
    constexpr int soft = 1;  // omp_pause_soft
    if (pause && at::get_num_threads() > 1) pause(soft);
}

// If the team has as many threads as there are processors, each worker is pinned to a processor of its own. Without
// that Linux sometimes starts a worker on its master's processor and moves it only milliseconds later: measured on two
// processors, forward takes 35-41 ms instead of 27-29. The pinning ends with the workers.
void begin_team() {
    has_team = true;
    cpu_set_t allowed;
    const int threads = at::get_num_threads();
    if (threads < 2 || sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) != threads) return;
    struct Places {
        std::vector<int> processors;  // the master's first
        pthread_t master;
    } places{{}, pthread_self()};
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed)) places.processors.push_back(i);
    const auto mine = std::find(places.processors.begin(), places.processors.end(), sched_getcpu());
    if (mine == places.processors.end()) return;
    std::rotate(places.processors.begin(), mine, places.processors.end());
    on_all_threads(
        [](void* data, unsigned number) {
            const auto& [processors, master] = *static_cast<Places*>(data);
            if (pthread_equal(pthread_self(), master)) return;
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(processors[number], &one);
            pthread_setaffinity_np(pthread_self(), sizeof one, &one);
        },
        &places);
}

void apply_thread_count() {
    thread_local int applied = 0;
    const int wanted = wanted_threads;
    if (wanted != applied) at::set_num_threads(applied = wanted);
}

void set_threads(int threads) {
    wanted_threads = threads;
    apply_thread_count();
    begin_team();
}

void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
    struct Share {
        int64_t n, threads;
        const std::function<void(int64_t, int64_t)>& body;
    } share{n, at::get_num_threads(), body};
    const auto run = [](void* context, unsigned number) {
        const auto& [n, threads, body] = *static_cast<Share*>(context);
        body(n * number / threads, n * (number + 1) / threads);
    };
    if (n < share.threads * grain || !on_all_threads(run, &share)) body(0, n);
}

bool run_on_team(unsigned parts, void (*work)(void*, unsigned), void* context) {
    if (!has_team || parts > static_cast<unsigned>(at::get_num_threads())) return false;
    struct Parts {
        unsigned count;
        void (*work)(void*, unsigned);
        void* context;
    } all{parts, work, context};
    const auto run = [](void* data, unsigned number) {
        const auto& [count, work, context] = *static_cast<Parts*>(data);
        if (number < count) work(context, number);
    };
    return on_all_threads(run, &all);
}

}  // namespace terse
