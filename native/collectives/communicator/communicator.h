// A rank's membership of a group, in the states ready → failed → closed. WireCommunicator runs the algorithms of this
// folder over an engine; NcclCommunicator gives the operations to NCCL.
//
// After the first failure every pending and later operation fails with it. Only `stop` blocks.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "communicator/counters.h"
#include "communicator/failure.h"
#include "communicator/operation.h"
#include "engines/engine.h"

namespace terse::collectives {

struct Completion {
    uint64_t id;
    std::optional<Failure> failure;
    std::vector<uint8_t> notes;  // all-to-all: one of every rank
    bool memory_in_use = false;  // after a failure: a device that does not answer may still use the operation's memory
};

enum class CancelOutcome {
    finished,   // the operation is over, or never existed
    cancelled,  // it never started; it completes with Reason::cancelled
    started,    // other ranks count on it, and only abort ends it
};

class Communicator {
public:
    Communicator(int rank, int size) : rank(rank), size(size) {}
    virtual ~Communicator() = default;

    const int rank, size;

    // Why this communicator cannot run the operation, or nullptr. The caller has checked the numbers of parts already.
    virtual const char* refusal(const Operation& operation) const = 0;
    virtual void submit(Operation operation) = 0;
    virtual void abort(const std::string& why) = 0;
    virtual CancelOutcome cancel(uint64_t id) = 0;
    virtual void close(uint64_t id) = 0;  // completes as `id` when every earlier operation is done and the connections
                                          // are closed
    virtual void stop() = 0;              // aborts and joins the threads; `completed` is not called again
    virtual std::vector<Completion> take() = 0;
    virtual const Counters& sent() const = 0;
};

}  // namespace terse::collectives
