#include <algorithm>

#include "engines/nccl/nccl_comm.h"

namespace terse::nccl {

using collectives::Kind;

namespace {

constexpr int most_notes = 16;  // all-to-alls in flight at once

}  // namespace

bool use(const std::vector<Call>& calls, const void* memory, size_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    const auto overlaps = [&](const BufferView& each) {
        const auto at = reinterpret_cast<uintptr_t>(each.data);
        return at < begin + bytes && begin < at + each.bytes();
    };
    return std::ranges::any_of(calls, [&](const Call& call) {
        return std::ranges::any_of(call.operation.parts, overlaps) ||
               std::ranges::any_of(call.operation.incoming, overlaps);
    });
}

bool NcclComm::uses(const void* memory, size_t bytes) const {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    const auto is_registered = [&](const Registration& each) {
        return each.begin < begin + bytes && begin < each.begin + each.bytes;
    };
    const auto is_used = [&](const Work& work) { return use(work.group_call.calls, memory, bytes); };
    return std::ranges::any_of(registrations_, is_registered) || use(coalescing, memory, bytes) ||
           std::ranges::any_of(in_flight_, is_used);
}

void NcclComm::deregister_later(const std::shared_ptr<NcclComm>& self, void* memory, size_t bytes) {
    if (failure) return;  // an abort ends its registrations
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    for (const Registration& each : registrations_) {
        if (each.begin >= begin + bytes || begin >= each.begin + each.bytes) continue;
        Call call;
        call.operation.kind = Kind::deregister_buffer;
        call.operation.device = device_.ordinal;
        call.operation.parts.push_back({reinterpret_cast<void*>(each.begin), each.bytes, DType::u8, false});
        flush(self);
        device_.queue.push_back({self, {call}, nullptr});
    }
}

CUdeviceptr NcclComm::allocate(size_t bytes) {
    void* memory = device_.allocate(bytes);
    allocations_.push_back(memory);
    return reinterpret_cast<CUdeviceptr>(memory);
}

CUdeviceptr NcclComm::scratch(size_t bytes) {
    constexpr size_t alignment = 256;
    const size_t room = (bytes + alignment - 1) / alignment * alignment;
    if (blocks_.empty() || used_ + room > blocks_.back().bytes) {
        const size_t grown = std::max({room, size_t{1} << 20, blocks_.empty() ? 0 : 2 * blocks_.back().bytes});
        blocks_.push_back({allocate(grown), grown});
        used_ = 0;
    }
    const CUdeviceptr memory = blocks_.back().memory + used_;
    used_ += room;
    return memory;
}

// All of them when the communicator is made: once operations run, allocating pinned CPU memory may wait for the device.
void NcclComm::allocate_notes() {
    void* received = nullptr;
    device_.check(device_.cuda.allocate_host(&received, most_notes * size, 0), "cuMemHostAlloc");
    host_allocations_.push_back(received);
    const CUdeviceptr memory = allocate(most_notes * (1 + size));
    for (int i = 0; i < most_notes; i++)
        notes_.push_back({memory + i * (1 + size), static_cast<uint8_t*>(received) + i * size});
}

Notes NcclComm::take_notes() {
    const Notes notes = notes_.back();
    notes_.pop_back();
    return notes;
}

void NcclComm::register_buffer(void* memory, size_t bytes) {
    void* handle = nullptr;
    accept(device_.nccl.CommRegister(handle_, memory, bytes, &handle), "ncclCommRegister");
    std::lock_guard lock(device_.mutex);
    registrations_.push_back({reinterpret_cast<uintptr_t>(memory), bytes, handle});
}

void NcclComm::deregister_buffer(void* memory) {
    const auto found = std::ranges::find(registrations_, reinterpret_cast<uintptr_t>(memory), &Registration::begin);
    if (found == registrations_.end()) return;
    if (found->handle) accept(device_.nccl.CommDeregister(handle_, found->handle), "ncclCommDeregister");
    std::lock_guard lock(device_.mutex);
    registrations_.erase(found);
}

}  // namespace terse::nccl
