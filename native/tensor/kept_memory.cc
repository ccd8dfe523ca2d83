#include "kept_memory.h"

#include <c10/core/impl/alloc_cpu.h>

#include <cstdlib>
#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

namespace terse {

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

void use_huge_pages() {
#ifdef __linux__
    static const bool once = [] {
        constexpr const char* variable = "THP_MEM_ALLOC_ENABLE";
        if (std::getenv(variable)) return true;
        setenv(variable, "1", 0);
        c10::free_cpu(c10::alloc_cpu(1));  // reads the variable, for all time
        unsetenv(variable);                // a child process decides by itself
        return true;
    }();
    (void)once;
#endif
}

}  // namespace terse
