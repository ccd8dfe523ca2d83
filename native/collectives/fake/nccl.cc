// An NCCL without a device, for tests. Communicators of one process find each other by their unique id, and data moves
// on the streams of the fake driver. Mistakes that sometimes go well with the real NCCL always fail here: a launch that
// NCCL has not taken yet is not on the stream, memory must be allocated on the device, and only one thread at a time
// may use a communicator.
//
// A file fake.conf beside this library sets, for example, "version=22907 progress=3": the result of ncclGetVersion, and
// how often each call is "in progress" before it is done. "splitting=9": how often a split is in progress. "split=5"
// and "register=5": the errors with which those calls end. Calls that do not match hang, as on a device. Aborting and
// destroying a communicator wait for everything that runs on the device, as they may on a real one.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "elements.h"
#include "stream.h"
#include "world.h"

namespace {

enum : int {
    success,
    unhandled_cuda_error,
    system_error,
    internal_error,
    invalid_argument,
    invalid_usage,
    remote_error,
    in_progress
};

struct Id {
    char internal[128];
};

int setting(const char* name, int otherwise) {
    Dl_info info;
    dladdr(reinterpret_cast<void*>(&setting), &info);
    const std::string path = info.dli_fname;
    std::ifstream file(path.substr(0, path.find_last_of('/')) + "/fake.conf");
    for (std::string word; file >> word;)
        if (word.starts_with(std::string(name) + "=")) return std::stoi(word.substr(std::strlen(name) + 1));
    return otherwise;
}
int version() {
    static const int version = setting("version", 23007);
    return version;
}
int progress() {
    static const int progress = setting("progress", 1);
    return progress;
}

std::mutex worlds_mutex;
std::map<std::string, std::shared_ptr<World>> worlds;

}  // namespace

struct ncclComm {
    std::shared_ptr<State> state;
    enum { initializing, ready, launching, splitting, failed, finalizing, finalized } stage = initializing;
    int left = 0;  // how often it is still "in progress"
    int failure = success;
    size_t splits = 0;
    int color = -1;
    ncclComm** made = nullptr;
    std::multimap<void*, void*> registered;  // handle → memory
    std::vector<Operation> pending;
    std::atomic<bool> inside = false;
    std::string last_error;
};

namespace {

thread_local int depth = 0;
thread_local std::vector<std::pair<ncclComm*, Operation>> grouped;
std::string last_error;  // of calls without a communicator

// Fails if two threads use one communicator at the same time.
struct Enter {
    ncclComm* comm;
    bool alone;
    explicit Enter(ncclComm* comm) : comm(comm), alone(!comm->inside.exchange(true)) {}
    ~Enter() {
        if (alone) comm->inside = false;
    }
};
#define ENTER(comm)    \
    Enter enter(comm); \
    if (!enter.alone) return internal_error

void launch(ncclComm* comm) {
    uint64_t first = comm->state->sequence;
    for (const Operation& operation : comm->pending)
        comm->state->sequence += operation.kind != Kind::send && operation.kind != Kind::recv;
    comm->state->running++;
    comm->pending[0].stream->enqueue(
        [state = comm->state, operations = std::move(comm->pending), first] { run(state, operations, first); });
    comm->pending.clear();
    comm->stage = ncclComm::ready;
}

ncclComm* make(const std::shared_ptr<World>& world, int rank, int device) {
    auto* comm = new ncclComm;
    comm->state = std::make_shared<State>();
    comm->state->world = world;
    comm->state->rank = rank;
    comm->state->device = device;
    fake_cuda_count(Counted::communicators, 1);
    return comm;
}

void unmake(ncclComm* comm) {
    for (const auto& [handle, memory] : comm->registered) fake_cuda_hold(memory, false);
    fake_cuda_count(Counted::communicators, -1);
    delete comm;
}

// The caller holds the world's mutex, and all ranks have called the split. A split that fails makes a
// communicator, too.
void finish_split(ncclComm* comm) {
    World& world = *comm->state->world;
    const auto& answers = world.splits[comm->splits - 1];
    comm->failure = setting("split", success);
    comm->stage = comm->failure == success ? ncclComm::ready : ncclComm::failed;
    if (comm->failure != success) comm->last_error = "the split has failed";
    if (comm->color < 0) return;
    std::vector<std::pair<int, int>> order;  // key and rank
    for (const auto& [rank, answer] : answers)
        if (answer.first == comm->color) order.emplace_back(answer.second, rank);
    std::ranges::sort(order);
    auto& child = world.children[{comm->splits - 1, comm->color}];
    if (!child) {
        child = std::make_shared<World>();
        child->size = static_cast<int>(order.size());
    }
    const auto place = std::ranges::find(order, comm->state->rank, &std::pair<int, int>::second);
    *comm->made = make(child, static_cast<int>(place - order.begin()), comm->state->device);
    (*comm->made)->stage = ncclComm::ready;
}

int begin(ncclComm* comm) {
    comm->stage = ncclComm::launching;
    comm->left = progress();
    if (comm->left > 0) return in_progress;
    return launch(comm), success;
}

int add(ncclComm* comm, const Operation& operation) {
    ENTER(comm);
    const int n = comm->state->world->size;
    const size_t bytes = operation.count * size_of(operation.type);
    const size_t out = operation.kind == Kind::reduce_scatter || operation.kind == Kind::all_to_all ? n * bytes : bytes;
    const size_t in = operation.kind == Kind::all_gather || operation.kind == Kind::all_to_all ? n * bytes : bytes;
    const auto refuse = [&](const std::string& why) { return comm->last_error = why, invalid_argument; };
    if (comm->stage != ncclComm::ready)
        return comm->last_error = "the communicator is not ready for an operation", invalid_usage;
    if (fake_cuda_current_device() != comm->state->device)
        return comm->last_error = "the current device is another one", invalid_usage;
    if (!bytes || !operation.stream) return refuse("nothing to move, or no stream");
    if (operation.peer < 0 || operation.peer >= n) return refuse("no such rank");
    if (operation.send && !fake_cuda_owns(operation.send, out))
        return refuse("the send buffer is not memory of the device, all " + std::to_string(operation.count) + " of it");
    if (operation.recv && !fake_cuda_owns(operation.recv, in))
        return refuse("the receive buffer is not memory of the device");
    if (reinterpret_cast<uintptr_t>(operation.recv) % size_of(operation.type)) return refuse("misaligned memory");
    if (operation.kind == Kind::all_to_all && operation.send == operation.recv) return refuse("an all-to-all in place");
    if (depth > 0) return grouped.emplace_back(comm, operation), success;
    comm->pending = {operation};
    return begin(comm);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int ncclGetVersion(int* answer) { return *answer = version(), success; }

// The last byte is a check sum, so every byte must arrive.
EXPORT int ncclGetUniqueId(Id* id) {
    static std::atomic<int> next = 1;
    const int number = next++;
    std::memcpy(id->internal, &number, 4);
    char sum = 0;
    for (int i = 4; i < 127; i++) id->internal[i] = static_cast<char>(number * 31 + i * 7);
    for (int i = 0; i < 127; i++) sum = static_cast<char>(sum * 3 + id->internal[i]);
    id->internal[127] = sum;
    return success;
}

// The error in a configuration, or "".
static std::string wrong_with(const void* config) {
    // Read at nccl.h's offsets, not by this project's own declaration.
    const auto* at = static_cast<const char*>(config);
    const auto number = [&](int offset) {
        int value;
        std::memcpy(&value, at + offset, 4);
        return value;
    };
    const auto text = [&](int offset) {
        const char* value;
        std::memcpy(&value, at + offset, 8);
        return std::string(value ? value : "");
    };
    if (number(0) != 96 || number(4) != 0 || static_cast<unsigned>(number(8)) != 0xcafebeef)
        return "the configuration has another size or magic";
    if (number(12) != std::min(23007, version())) return "the configuration says version " + std::to_string(number(12));
    if (number(16) != 0) return "the configuration asks for calls that block";
    if (number(40) != INT32_MIN) return "the configuration shares what an abort of one group would end in another";
    if (number(44) != INT32_MIN && version() < 22600) return "padding is not undefined";
    if (number(24) != INT32_MIN && number(24) > number(28))
        return "minCTAs " + std::to_string(number(24)) + " above maxCTAs " + std::to_string(number(28)) + " for " +
               text(48) + " over " + text(32);
    return "";
}

EXPORT int ncclCommInitRankConfig(ncclComm** comm, int size, Id id, int rank, const void* config) {
    const auto refuse = [&](const std::string& why) { return last_error = why, invalid_argument; };
    char sum = 0;
    for (int i = 0; i < 127; i++) sum = static_cast<char>(sum * 3 + id.internal[i]);
    if (sum != id.internal[127]) return refuse("the unique id is not one");
    if (size < 1 || rank < 0 || rank >= size) return refuse("no such rank");
    if (fake_cuda_current_device() < 0) return refuse("no device is current");
    if (const std::string why = wrong_with(config); !why.empty()) return refuse(why);

    std::shared_ptr<World> world;
    {
        std::lock_guard lock(worlds_mutex);
        auto& found = worlds[std::string(id.internal, sizeof id.internal)];
        if (!found) found = std::make_shared<World>();
        world = found;
    }
    std::lock_guard lock(world->mutex);
    if (world->size == 0) world->joined.resize(size);
    if (world->size != 0 && world->size != size) return refuse("ranks name different sizes");
    world->size = size;
    if (world->joined[rank]) return refuse("a rank comes twice");
    world->joined[rank] = true;
    world->present++;
    *comm = make(world, rank, fake_cuda_current_device());
    (*comm)->left = progress();
    return in_progress;
}

// As in the real NCCL, it returns "success" when the split has only begun; the parent reports its progress.
EXPORT int ncclCommSplit(ncclComm* comm, int color, int key, ncclComm** made, const void* config) {
    ENTER(comm);
    const auto refuse = [&](const std::string& why) { return comm->last_error = why, invalid_argument; };
    if (comm->stage != ncclComm::ready)
        return comm->last_error = "the communicator is not ready for a split", invalid_usage;
    if (comm->state->running > 0) return comm->last_error = "an operation is outstanding", invalid_usage;
    if (color < -1 || !made) return refuse("no such color");
    if (color >= 0 && !config) return refuse("a split without a configuration");
    if (config)
        if (const std::string why = wrong_with(config); !why.empty()) return refuse(why);
    *made = nullptr;
    comm->stage = ncclComm::splitting;
    comm->left = setting("splitting", progress());
    comm->color = color;
    comm->made = made;
    World& world = *comm->state->world;
    std::lock_guard lock(world.mutex);
    if (world.splits.size() == comm->splits) world.splits.emplace_back();
    world.splits[comm->splits++][comm->state->rank] = {color, key};
    return success;
}

EXPORT int ncclCommGetAsyncError(ncclComm* comm, int* error) {
    ENTER(comm);
    World& world = *comm->state->world;
    std::lock_guard lock(world.mutex);
    *error = success;
    if (world.broken) return *error = remote_error, comm->last_error = "a rank has aborted", success;
    if (comm->stage == ncclComm::ready || comm->stage == ncclComm::finalized) return success;
    *error = in_progress;
    if (comm->stage == ncclComm::failed) return *error = comm->failure, success;
    if (comm->left-- > 0) return success;
    if (comm->stage == ncclComm::splitting) {
        if (static_cast<int>(world.splits[comm->splits - 1].size()) < world.size) return success;
        finish_split(comm);
        return *error = comm->failure, success;
    }
    if (comm->stage == ncclComm::initializing && world.present < world.size) return success;
    if (comm->stage == ncclComm::finalizing && world.finalized < world.size) return success;
    if (comm->stage == ncclComm::launching) launch(comm);
    else comm->stage = comm->stage == ncclComm::initializing ? ncclComm::ready : ncclComm::finalized;
    return *error = success;
}

EXPORT int ncclCommFinalize(ncclComm* comm) {
    ENTER(comm);
    if (!comm->registered.empty()) return comm->last_error = "memory is still registered", invalid_usage;
    if (comm->stage != ncclComm::ready) return invalid_usage;
    comm->stage = ncclComm::finalizing;
    comm->left = progress();
    std::lock_guard lock(comm->state->world->mutex);
    comm->state->world->finalized++;
    return in_progress;
}

EXPORT int ncclCommDestroy(ncclComm* comm) {
    if (comm->stage != ncclComm::finalized) return invalid_usage;
    fake_cuda_synchronize(comm->state->device);
    unmake(comm);
    return success;
}

EXPORT int ncclCommAbort(ncclComm* comm) {
    fake_cuda_count(Counted::aborts, 1);
    {
        ENTER(comm);
        World& world = *comm->state->world;
        std::lock_guard lock(world.mutex);
        comm->state->aborted = world.broken = true;
        world.changed.notify_all();
        // A split in progress leaves the new communicator to the caller, who must abort it.
        if (comm->stage == ncclComm::splitting && comm->color >= 0)
            *comm->made = make(std::make_shared<World>(), 0, comm->state->device);
    }
    fake_cuda_synchronize(comm->state->device);
    unmake(comm);
    return success;
}

EXPORT int ncclCommCuDevice(ncclComm* comm, int* device) { return *device = comm->state->device, success; }
EXPORT const char* ncclGetErrorString(int error) {
    static const char* names[] = {"no error",
                                  "unhandled cuda error",
                                  "unhandled system error",
                                  "internal error",
                                  "invalid argument",
                                  "invalid usage",
                                  "remote process exited or there was a network error",
                                  "in progress"};
    return error >= 0 && error < 8 ? names[error] : "unknown result code";
}
EXPORT const char* ncclGetLastError(ncclComm* comm) { return comm ? comm->last_error.c_str() : last_error.c_str(); }

EXPORT int ncclGroupStart() { return depth++, success; }
EXPORT int ncclGroupEnd() {
    if (depth == 0) return invalid_usage;
    if (--depth > 0) return success;
    const auto all = std::move(grouped);
    grouped.clear();
    int result = success;
    std::vector<ncclComm*> comms;
    for (const auto& [comm, operation] : all) {
        if (comm->pending.empty()) comms.push_back(comm);
        comm->pending.push_back(operation);
    }
    for (ncclComm* comm : comms)
        if (begin(comm) == in_progress) result = in_progress;
    return result;
}

EXPORT int ncclAllReduce(const void* s, void* r, size_t n, int type, int op, ncclComm* c, CUstream_st* stream) {
    return add(c, {Kind::all_reduce, s, r, n, type, op, 0, stream});
}
EXPORT int ncclReduceScatter(const void* s, void* r, size_t n, int type, int op, ncclComm* c, CUstream_st* stream) {
    return add(c, {Kind::reduce_scatter, s, r, n, type, op, 0, stream});
}
EXPORT int ncclReduce(const void* s, void* r, size_t n, int type, int op, int root, ncclComm* c, CUstream_st* stream) {
    return add(c, {Kind::reduce, s, r, n, type, op, root, stream});
}
EXPORT int ncclAllGather(const void* s, void* r, size_t n, int type, ncclComm* c, CUstream_st* stream) {
    return add(c, {Kind::all_gather, s, r, n, type, 0, 0, stream});
}
EXPORT int ncclAlltoAll(const void* s, void* r, size_t n, int type, ncclComm* c, CUstream_st* stream) {
    return add(c, {Kind::all_to_all, s, r, n, type, 0, 0, stream});
}
EXPORT int ncclBroadcast(const void* s, void* r, size_t n, int type, int root, ncclComm* c, CUstream_st* stream) {
    return add(c, {Kind::broadcast, s, r, n, type, 0, root, stream});
}
EXPORT int ncclSend(const void* s, size_t n, int type, int peer, ncclComm* c, CUstream_st* stream) {
    return add(c, {Kind::send, s, nullptr, n, type, 0, peer, stream});
}
EXPORT int ncclRecv(void* r, size_t n, int type, int peer, ncclComm* c, CUstream_st* stream) {
    return add(c, {Kind::recv, nullptr, r, n, type, 0, peer, stream});
}

EXPORT int ncclMemAlloc(void** memory, size_t bytes) {
    uintptr_t address = 0;
    if (cuMemAlloc_v2(&address, bytes) != 0) return unhandled_cuda_error;
    *memory = reinterpret_cast<void*>(address);
    return success;
}
EXPORT int ncclMemFree(void* memory) {
    return cuMemFree_v2(reinterpret_cast<uintptr_t>(memory)) == 0 ? success : unhandled_cuda_error;
}
EXPORT int ncclCommRegister(ncclComm* comm, void* memory, size_t bytes, void** handle) {
    ENTER(comm);
    if (const int error = setting("register", 0)) return comm->last_error = "no memory can be registered", error;
    if (comm->stage != ncclComm::ready) return comm->last_error = "the communicator is not ready", invalid_usage;
    if (!fake_cuda_owns(memory, bytes))
        return comm->last_error = "only memory of the device is registered", invalid_argument;
    *handle = static_cast<char*>(memory) + 1;  // an address that no caller uses by mistake
    comm->registered.emplace(*handle, memory);
    fake_cuda_hold(memory, true);
    return success;
}
EXPORT int ncclCommDeregister(ncclComm* comm, void* handle) {
    ENTER(comm);
    if (comm->stage != ncclComm::ready || comm->state->running > 0)
        return comm->last_error = "an operation is outstanding", invalid_usage;
    const auto found = comm->registered.find(handle);
    if (found == comm->registered.end()) return comm->last_error = "this handle is none", invalid_usage;
    fake_cuda_hold(found->second, false);
    comm->registered.erase(found);
    return success;
}
