#include "tensor_memory.h"

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>
#if __has_include(<malloc.h>)
#include <malloc.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "torch.h"

namespace terse {
namespace {

constexpr uintptr_t alignment = 64;  // of libtorch's own allocator, too
constexpr size_t large = size_t{2} << 20;

// Stands before the bytes of a tensor.
struct Header {
    void* block;
    int64_t bytes;
    uint64_t counting;  // the one that it counts for; 0: none
};

std::atomic<uint64_t> counting{0};  // 0: nothing is counted
std::mutex counts;                  // of all that follows
uint64_t countings = 0;
int64_t live = 0;
std::vector<int64_t> live_after;  // each allocation

void ask_for_huge_pages([[maybe_unused]] char* memory, [[maybe_unused]] size_t bytes) {
#ifdef __linux__
    static const bool wanted = [] {
        const char* given = std::getenv("THP_MEM_ALLOC_ENABLE");
        return !given || std::strcmp(given, "0") != 0;
    }();
    if (!wanted || bytes < large) return;
    static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(memory) + page - 1) / page * page;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes) / page * page;
    (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

struct FromMalloc final : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) override {
        if (bytes == 0) return {nullptr, nullptr, free, c10::Device(c10::kCPU)};
        constexpr size_t before = sizeof(Header) + alignment;
        void* const block = bytes <= PTRDIFF_MAX - before ? std::malloc(bytes + before) : nullptr;
        TORCH_CHECK(block, "you tried to allocate ", bytes, " bytes");  // context.cc knows these words
        const uintptr_t first = reinterpret_cast<uintptr_t>(block) + before;
        char* const memory = reinterpret_cast<char*>(first - first % alignment);
        Header header{block, static_cast<int64_t>(bytes), 0};
        if (counting.load()) {
            const std::lock_guard lock(counts);
            header.counting = counting.load();  // it may have ended meanwhile
            if (header.counting) live_after.push_back(live += header.bytes);
        }
        std::memcpy(memory - sizeof header, &header, sizeof header);
        ask_for_huge_pages(memory, bytes);
        return {memory, memory, free, c10::Device(c10::kCPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return free; }
    void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

    static void free(void* memory) {
        if (!memory) return;
        Header header;
        std::memcpy(&header, static_cast<char*>(memory) - sizeof header, sizeof header);
        if (header.counting) {
            const std::lock_guard lock(counts);
            if (header.counting == counting.load()) live -= header.bytes;
        }
        std::free(header.block);
    }
};

}  // namespace

void keep_freed_memory() {
#ifdef M_ARENA_MAX
    constexpr int MiB = 1 << 20;
    struct Setting {
        const char* variable;
        int parameter, value;
    };
    constexpr Setting settings[] = {
        {"MALLOC_MMAP_THRESHOLD_", M_MMAP_THRESHOLD, 32 * MiB},
        {"MALLOC_TRIM_THRESHOLD_", M_TRIM_THRESHOLD, 1024 * MiB},
        {"MALLOC_TOP_PAD_", M_TOP_PAD, 64 * MiB},  // an arena grows by as much; pages that are not touched take no
                                                   // memory
        {"MALLOC_ARENA_MAX", M_ARENA_MAX, 1},      // for threads that start from now on
    };
    for (const auto& [variable, parameter, value] : settings)
        if (!std::getenv(variable)) mallopt(parameter, value);
#endif
}

void use_own_allocator() {
    static FromMalloc& allocator = *new FromMalloc;  // for ever: tensors may outlive what ends with the process
    c10::SetAllocator(c10::kCPU, &allocator);
}

void begin_counting() {
    const std::lock_guard lock(counts);
    if (counting.load()) throw std::logic_error("the memory of tensors is being counted already");
    live = 0;
    live_after.clear();
    counting = ++countings;
}

std::vector<int64_t> end_counting() {
    const std::lock_guard lock(counts);
    counting = 0;
    return std::move(live_after);
}

}  // namespace terse
