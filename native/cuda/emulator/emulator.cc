// Runs the blocks of a launch one after another, the threads of each as fibers, both in an order drawn anew.
#include <cstdio>
#include <sys/mman.h>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "stack.h"

// The address sanitizer is not told of each change of fibers, which would take a quarter of the time: it needs to know
// only for stacks of its own, on which locals outlive their function.
extern "C" const char *__asan_default_options() { return "detect_stack_use_after_return=0"; }

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {
namespace {
constexpr size_t STACK = (256 << 10) + 17 * 64;  // no power of two: the ends of all stacks would share a few sets of
                                                 // the cache
constexpr unsigned MOST_THREADS = 1024;

struct fiber {
    enum { READY, WAITING, ENDED } state;
    stack_state stack;
    dim3 index;
    unsigned mask;  // of the collective that it waits in
    collective kind;
    uint64_t brought, gathered[32];
};

fiber fibers[MOST_THREADS];
// What a whole warp brought to its last collective: no lane comes to the next before all have read.
uint64_t of_warp[MOST_THREADS / 32][32];
char *stacks;
stack_state scheduler;
unsigned current, threads, in_barrier, ended, born;
std::vector<unsigned> ready;
const std::function<void()> *kernel;

uint64_t random_state = 1;
size_t random_below(size_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % n;
}

// A fiber runs one thread after another: making a new one for each thread of each block takes as long as most threads
// run.
void live() {
    for (;;) {
        (*kernel)();
        fiber &self = fibers[current];
        self.state = fiber::ENDED;
        ended++;
        swap_stacks(&self.stack, &scheduler);
    }
}

void wait() {
    fiber &self = fibers[current];
    self.state = fiber::WAITING;
    swap_stacks(&self.stack, &scheduler);
}

void wake(unsigned thread) {
    fibers[thread].state = fiber::READY;
    ready.push_back(thread);
}

void run_block(const dim3 &block) {
    ready.clear();
    in_barrier = ended = 0;
    threads = block.x * block.y * block.z;
    for (unsigned t = 0; t < threads; t++) {
        fibers[t].index = dim3(t % block.x, t / block.x % block.y, t / block.x / block.y);
        if (born == t) prepare_stack(&fibers[born].stack, stacks + born * STACK, STACK, live), born++;
        wake(t);
    }
    while (!ready.empty()) {
        std::swap(ready[random_below(ready.size())], ready.back());
        current = ready.back();
        ready.pop_back();
        threadIdx = fibers[current].index;
        swap_stacks(&scheduler, &fibers[current].stack);
    }
    if (ended != threads) fail("threads of a block wait for others that do not come");
}
}  // namespace

void fail(const char *sentence) {
    std::fprintf(stderr, "block %u, thread %u: %s\n", blockIdx.x, current, sentence);
    std::abort();
}

unsigned lane() { return current % 32; }

const uint64_t *gather(unsigned mask, collective kind, uint64_t value) {
    fiber &self = fibers[current];
    if (!(mask >> lane() & 1)) fail("a lane takes part in a collective whose mask does not name it");
    self.mask = mask, self.kind = kind, self.brought = value;
    const unsigned first = current - lane();
    const uint64_t *const result = mask == 0xffffffffu ? of_warp[first / 32] : self.gathered;
    for (unsigned l = 0; l < 32; l++) {
        if (!(mask >> l & 1) || first + l == current) continue;
        const fiber &other = fibers[first + l];
        if (first + l >= threads || other.state == fiber::ENDED)
            fail("the mask of a collective names a lane that has ended");
        if (other.state == fiber::READY) {  // and will come, or be found to have gone elsewhere by who comes last
            wait();
            return result;
        }
        if (other.mask != mask || other.kind != kind) fail("lanes of one warp wait in different collectives");
    }
    for (unsigned l = 0; l < 32; l++) {
        if (!(mask >> l & 1)) continue;
        if (mask == 0xffffffffu) of_warp[first / 32][l] = fibers[first + l].brought;
        else
            for (unsigned from = 0; from < 32; from++)
                if (mask >> from & 1) fibers[first + l].gathered[from] = fibers[first + from].brought;
        if (first + l != current) wake(first + l);
    }
    return result;
}

void sync_threads() {
    if (ended) fail("__syncthreads after a thread of the block has ended");
    fiber &self = fibers[current];
    self.mask = 0xffffffffu, self.kind = SYNC_THREADS;
    if (++in_barrier < threads) {
        wait();
        return;
    }
    in_barrier = 0;
    for (unsigned t = 0; t < threads; t++)
        if (t != current) wake(t);
}

void run(const dim3 &grid, const dim3 &block, const std::function<void()> &work) {
    if (!stacks)
        stacks = (char *)mmap(nullptr, MOST_THREADS * STACK, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) fail("no memory for the stacks of a block");
    kernel = &work;
    gridDim = grid, blockDim = block;
    std::vector<size_t> order((size_t)grid.x * grid.y * grid.z);
    for (size_t b = 0; b < order.size(); b++) order[b] = b;
    for (size_t b = 0; b < order.size(); b++) {
        std::swap(order[b], order[b + random_below(order.size() - b)]);
        blockIdx = dim3((unsigned)(order[b] % grid.x), (unsigned)(order[b] / grid.x % grid.y),
                        (unsigned)(order[b] / grid.x / grid.y));
        run_block(block);
    }
}
}  // namespace emulator
