// Storages that asynchronous calls outside of libtorch use. Each stays alive, and keeps its address, until it is
// released, even if all of its tensors are disposed: libtorch refuses to resize it meanwhile. JavaScript thread only.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "torch.h"

namespace terse {

class RetainedStorages {
public:
    RetainedStorages() = default;
    // The environment ends while calls are under way. Their threads may outlive it, so the memory is never freed.
    ~RetainedStorages() {
        if (!storages_.empty()) new auto(std::move(storages_));
    }

    // Returns the number to release it by.
    double add(const at::Storage& storage) {
        c10::StorageImpl* memory = storage.unsafeGetStorageImpl();
        const auto [use, first] = uses_.try_emplace(memory, Use{0, memory->resizable()});
        if (first) memory->set_resizable(false);
        use->second.count++;
        storages_.emplace(++last_, storage);
        return static_cast<double>(last_);
    }

    bool empty() const { return storages_.empty(); }
    bool contains(const at::Tensor& tensor) const {
        return tensor.has_storage() && uses_.contains(tensor.storage().unsafeGetStorageImpl());
    }

    // A second call with the same number does nothing.
    void release(double number) {
        const auto found = storages_.find(static_cast<uint64_t>(number));
        if (found == storages_.end()) return;
        c10::StorageImpl* memory = found->second.unsafeGetStorageImpl();
        const auto use = uses_.find(memory);
        if (--use->second.count == 0) {
            memory->set_resizable(use->second.resizable);
            uses_.erase(use);
        }
        storages_.erase(found);
    }

private:
    struct Use {
        size_t count;
        bool resizable;  // before the first use
    };

    std::unordered_map<uint64_t, at::Storage> storages_;
    std::unordered_map<const c10::StorageImpl*, Use> uses_;
    uint64_t last_ = 0;
};

}  // namespace terse
