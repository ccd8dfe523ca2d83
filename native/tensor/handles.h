// A handle is the number by which JavaScript names a tensor: generation * 2^24 + index, into a table of one Node
// environment. A slot's generation grows when its tensor is disposed, so an old handle is detected and never names
// another tensor.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <unordered_set>
#include <vector>

#include "torch.h"

namespace terse {

class Handles {
public:
    static constexpr uint32_t index_bits = 24;
    static constexpr uint32_t last_generation = (1u << 29) - 1;  // generation * 2^24 + index < 2^53: exact in a double

    double add(at::Tensor tensor) {
        uint32_t index = free_;
        if (index != none) {
            free_ = slots_[index].next;
        } else {
            index = static_cast<uint32_t>(slots_.size());
            if (index >> index_bits)
                throw std::length_error(
                    "there are 16,777,216 live tensors, the most that fit; run each training step in a scope(), which "
                    "frees the tensors of the step");
            slots_.emplace_back();
        }
        Slot& slot = slots_[index];
        slot.tensor = std::move(tensor);
        live_++;
        return static_cast<double>((static_cast<uint64_t>(slot.generation) << index_bits) | index);
    }

    // Null if the tensor was disposed, or if the number was never a handle.
    const at::Tensor* find(double handle) const {
        const Slot* slot = slot_of(handle);
        return slot ? &slot->tensor : nullptr;
    }

    // Whether the number has the form of a handle, of a live tensor or not.
    static bool plausible(double handle) {
        return handle >= (1u << index_bits) && handle < 9007199254740992.0 &&
               handle == static_cast<double>(static_cast<uint64_t>(handle));
    }

    // Removes the tensor. Adds the bytes that were reported to the garbage collector for it to `external`.
    at::Tensor remove(double handle, int64_t& external) {
        Slot* slot = slot_of(handle);
        if (!slot) return {};
        at::Tensor tensor = std::move(slot->tensor);
        slot->tensor.reset();
        external += slot->external;
        slot->external = 0;
        live_--;
        if (slot->generation++ < last_generation) {  // a slot is not reused after its last generation
            slot->next = free_;
            free_ = static_cast<uint32_t>(slot - slots_.data());
        }
        return tensor;
    }

    // Bytes to report to the garbage collector for this tensor: 0 if another tensor holds the same memory.
    int64_t count_external(double handle) {
        Slot* slot = slot_of(handle);
        if (!slot || slot->external || !slot->tensor.has_storage() || slot->tensor.storage().use_count() > 1) return 0;
        if (slot->tensor.is_meta()) return 0;  // it has a shape only
        return slot->external = static_cast<int64_t>(slot->tensor.storage().nbytes());
    }

    struct Usage {
        size_t tensors, bytes;
    };

    // Live tensors, and the bytes of their storages, each storage counted once.
    Usage usage() const {
        std::unordered_set<const void*> seen;
        size_t bytes = 0;
        for (const Slot& slot : slots_) {
            if (!slot.tensor.defined() || !slot.tensor.has_storage()) continue;
            const at::Storage& storage = slot.tensor.storage();
            if (seen.insert(storage.unsafeGetStorageImpl()).second) bytes += storage.nbytes();
        }
        return {live_, bytes};
    }

private:
    static constexpr uint32_t none = UINT32_MAX;

    struct Slot {
        at::Tensor tensor;  // undefined: the slot is free
        int64_t external = 0;
        uint32_t generation = 1;
        uint32_t next = none;
    };

    const Slot* slot_of(double handle) const {
        if (!plausible(handle)) return nullptr;
        const uint64_t bits = static_cast<uint64_t>(handle);
        const uint32_t index = bits & ((1u << index_bits) - 1);
        if (index >= slots_.size()) return nullptr;
        const Slot& slot = slots_[index];
        return slot.generation == bits >> index_bits && slot.tensor.defined() ? &slot : nullptr;
    }
    Slot* slot_of(double handle) { return const_cast<Slot*>(static_cast<const Handles*>(this)->slot_of(handle)); }

    std::vector<Slot> slots_;
    uint32_t free_ = none;
    size_t live_ = 0;
};

}  // namespace terse
