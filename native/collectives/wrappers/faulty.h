// Fault injection: an engine in front of another one, which fails on purpose at a given operation. For tests.
#pragma once
#include <memory>
#include <vector>

#include "engines/engine.h"

namespace terse::collectives {

struct Fault {
    enum class Kind : uint8_t {
        delay,  // this rank sleeps before the operation
        loss,   // its messages of the operation are lost, to rank `to` or to all ranks
        death,  // this rank is lost when the operation begins
    } kind;
    uint32_t at;      // number of the collective, from 1; 0: every operation, send and recv too
    double delay_ms;  // delay
    int to;           // loss; −1: all ranks
};

std::unique_ptr<Engine> make_faulty(std::unique_ptr<Engine> engine, std::vector<Fault> faults);

}  // namespace terse::collectives
