// What a communicator has sent.
#pragma once
#include <atomic>
#include <cstdint>

namespace terse::collectives {

struct Counters {
    std::atomic<uint64_t> bytes{0}, messages{0}, header_bytes{0};
    void clear() { bytes = messages = header_bytes = 0; }
};

}  // namespace terse::collectives
