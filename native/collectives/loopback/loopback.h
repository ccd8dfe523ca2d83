// Ranks that are threads of one process: a send and a receive that find each other are one memcpy.
#pragma once
#include <memory>
#include <vector>

#include "../engine.h"

namespace terse::collectives {

struct LoopbackFaults {
    std::vector<double> delay_ms;  // rank r sleeps so long before each operation; empty: nobody does
    int lost_rank = -1;            // this rank vanishes …
    uint32_t lost_at = 0;          // … when it begins its operation of this number
};

std::vector<std::unique_ptr<Engine>> make_loopback(int size, LoopbackFaults faults);

}  // namespace terse::collectives
