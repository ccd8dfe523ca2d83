// The ranks of one communicator, which meet in memory: what each has called, and what NCCL's kernels do then.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

struct CUstream_st;

enum class Kind { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce, send, recv };

struct Operation {
    Kind kind;
    const void* send;
    void* recv;
    size_t count;
    int type, op, peer;
    CUstream_st* stream;

    bool fits(const Operation& other) const {
        return kind == other.kind && count == other.count && type == other.type && op == other.op && peer == other.peer;
    }
};

struct Slot {
    std::map<int, Operation> arrived;
    bool done = false;
};

struct Post {
    const void* data;
    size_t bytes;
    bool taken = false;
};

struct World {
    std::mutex mutex;
    std::condition_variable changed;
    int size = 0;
    std::vector<bool> joined;
    int present = 0, finalized = 0;
    bool broken = false;
    std::vector<std::map<int, std::pair<int, int>>> splits;             // of each split, by rank: color and key
    std::map<std::pair<size_t, int>, std::shared_ptr<World>> children;  // by split and color
    std::map<uint64_t, Slot> slots;
    std::map<std::pair<int, int>, std::deque<std::shared_ptr<Post>>> posts;
};

// One rank of a world.
struct State {
    std::shared_ptr<World> world;
    int rank, device;
    uint64_t sequence = 0;
    std::atomic<int> running = 0;  // launched and not finished
    bool aborted = false;          // guarded by the world's mutex
};

// Queues on the stream what these operations' kernel does. `first`: the number of the first but sends and receives.
void run(const std::shared_ptr<State>& state, const std::vector<Operation>& operations, uint64_t first);
