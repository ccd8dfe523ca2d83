// What goes wrong in a network, on purpose and at a given operation: an engine in front of another. For tests.
#pragma once
#include <memory>
#include <vector>

#include "../engine.h"

namespace terse::collectives {

struct Fault {
    enum class Kind : uint8_t {
        delay,  // this rank sleeps before the operation
        loss,   // what it sends in the operation never comes, to `to` or to anybody
        death,  // it vanishes when the operation begins
    } kind;
    uint32_t at;      // number of its collective, from 1; 0: every operation, those of send and recv too
    double delay_ms;  // of a delay
    int to;           // of a loss; −1: to everybody
};

std::unique_ptr<Engine> make_faulty(std::unique_ptr<Engine> engine, std::vector<Fault> faults);

}  // namespace terse::collectives
