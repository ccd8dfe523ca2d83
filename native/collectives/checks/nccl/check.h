// Checks of the NCCL engine without Node: a communicator with blocking calls, and buffers that compare themselves.
#pragma once
#include <condition_variable>
#include <cstring>
#include <numeric>

#include "engines/nccl/nccl_communicator.h"

namespace terse::nccl::check {

using collectives::Completion;
using collectives::Failure;
using collectives::Kind;
using collectives::Operation;
using collectives::Reduction;

template <typename T>
constexpr DType dtype_of() {
    if constexpr (std::is_same_v<T, int8_t>) return DType::i8;
    else if constexpr (std::is_same_v<T, uint8_t>) return DType::u8;
    else if constexpr (std::is_same_v<T, int32_t>) return DType::i32;
    else if constexpr (std::is_same_v<T, int64_t>) return DType::i64;
    else if constexpr (std::is_same_v<T, float>) return DType::f32;
    else return DType::f64;
}

struct Wrong : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Skipped : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void require(bool holds, const std::string& what) {
    if (!holds) throw Wrong(what);
}

// A communicator, and blocking calls of its operations.
class Group {
public:
    Group(std::shared_ptr<Device> device, int rank, int size, const UniqueId& id, double timeout = 60,
          double connect_timeout = 60)
        : device(std::move(device)),
          communicator(this->device, rank, size, id, std::make_unique<Configuration>(this->device->nccl.version),
                       seconds(timeout), seconds(connect_timeout), [this] {
                           std::lock_guard lock(mutex_);
                           completed_ = true;
                           changed_.notify_all();
                       }) {}

    const std::shared_ptr<Device> device;
    NcclCommunicator communicator;

    int rank() const { return communicator.rank; }
    int size() const { return communicator.size; }

    uint64_t start(Operation operation) {
        const uint64_t id = operation.id = ++last_id_;
        if (const char* why = communicator.refusal(operation)) throw Wrong(why);
        communicator.submit(std::move(operation));
        return id;
    }
    // Waits for the operation. Throws its Failure; returns the notes.
    std::vector<uint8_t> wait(uint64_t id) {
        for (;;) {
            {
                std::unique_lock lock(mutex_);
                changed_.wait_for(lock, std::chrono::milliseconds(10), [this] { return completed_; });
                completed_ = false;
            }
            for (Completion& each : communicator.take()) done_.emplace(each.id, std::move(each));
            const auto found = done_.extract(id);
            if (found.empty()) continue;
            if (found.mapped().failure) throw *found.mapped().failure;
            return found.mapped().notes;
        }
    }
    std::vector<uint8_t> run(Operation operation) {
        const uint64_t id = start(std::move(operation));
        communicator.flush();
        return wait(id);
    }
    void connect() {
        Operation operation;
        operation.kind = Kind::connect;
        run(operation);
    }
    void close() {
        const uint64_t id = ++last_id_;
        communicator.close(id);
        wait(id);
    }
    uint64_t next_id() { return ++last_id_; }

    Operation collective(Kind kind, std::vector<BufferView> parts, std::vector<BufferView> incoming = {},
                         int peer = -1) const {
        Operation operation;
        operation.kind = kind;
        operation.parts = std::move(parts);
        operation.incoming = std::move(incoming);
        operation.peer = peer;
        for (const auto* list : {&operation.parts, &operation.incoming})
            for (const BufferView& memory : *list)
                if (!memory.on_cpu) operation.device = device->ordinal;
        return operation;
    }

private:
    static Clock::duration seconds(double count) {
        return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    bool completed_ = false;
    uint64_t last_id_ = 0;
    std::map<uint64_t, Completion> done_;
};

// A buffer of numbers, on the device or on the CPU.
template <typename T>
class Buffer {
public:
    Buffer(Group& group, const std::vector<T>& values, bool on_device)
        : group_(group), host_(values), on_device_(on_device) {
        if (!on_device) return;
        device_ = static_cast<T*>(group.device->allocate_buffer(std::max<size_t>(1, values.size() * sizeof(T))));
        if (!values.empty()) group.run(group.collective(Kind::copy, {here()}, {whole()}));
    }
    Buffer(const Buffer&) = delete;
    ~Buffer() {
        if (device_) group_.device->free_buffer(device_);
    }
    T* data() { return on_device_ ? device_ : host_.data(); }
    BufferView part(size_t from, size_t to) { return {data() + from, to - from, dtype_of<T>(), !on_device_}; }
    BufferView whole() { return part(0, host_.size()); }
    std::vector<T> read() {
        if (on_device_ && !host_.empty()) group_.run(group_.collective(Kind::copy, {whole()}, {here()}));
        return host_;
    }
    void expect(const std::vector<T>& wanted, const std::string& what) {
        const std::vector<T> got = read();
        for (size_t i = 0; i < wanted.size(); i++)
            require(got[i] == wanted[i], what + ": element " + std::to_string(i) + " of " +
                                             std::to_string(wanted.size()) + " is " + std::to_string(got[i]) +
                                             " and not " + std::to_string(wanted[i]));
    }

private:
    BufferView here() { return {host_.data(), host_.size(), dtype_of<T>(), true}; }
    Group& group_;
    std::vector<T> host_;
    const bool on_device_;
    T* device_ = nullptr;
};

template <typename T>
std::vector<T> fill(size_t length, const std::function<double(size_t)>& f) {
    std::vector<T> values(length);
    for (size_t i = 0; i < length; i++) values[i] = static_cast<T>(f(i));
    return values;
}

inline std::shared_ptr<Device> device_of(int device) {
    const auto library = open_library("");
    const auto driver = open_driver("");
    require(library.library && driver.library, library.reason + " " + driver.reason);
    return std::make_shared<Device>(*library.library, *driver.library, device);
}

inline UniqueId unique_id(const Library& nccl) {
    UniqueId id;
    const Result result = nccl.GetUniqueId(&id);
    require(result == success,
            std::string("ncclGetUniqueId: ") + nccl.GetErrorString(result) + " (" + nccl.GetLastError(nullptr) + ")");
    return id;
}

// operations.cc: one check of an operation or of several.
struct Check {
    const char* name;
    std::function<void(Group&, bool on_device)> run;
    bool on_cpu_too = true;
};
const std::vector<Check>& all_checks();

std::unique_ptr<Group> split(Group& group, int color, int key, int rank, int size, double connect_timeout = 60);

// ranks.cc: what one rank does. True if everything succeeded.
bool run_checks(Group& group);
bool run_hang(Group& group);
void print(const std::string& line);

// processes.cc: ranks in processes of their own.
bool run_rank(const std::string& what, int rank, int size, int ordinal, const std::string& file);
bool run_processes(const char* program, const std::string& what, int size);

}  // namespace terse::nccl::check
