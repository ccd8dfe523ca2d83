// A rank's place in a group, and the state ready → failed → closed. Two things implement it: wire_communicator.h runs our own
// collectives over an engine that carries bytes; nccl/ hands them to NCCL, on a stream of its device.
//
// After the first error everything pending and later fails with that same error. Nothing here blocks but `stop`.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine.h"
#include "message.h"
#include "operation.h"

namespace terse::collectives {

struct Completion {
    uint64_t id;
    std::optional<Failure> failure;
    std::vector<uint8_t> notes;  // all-to-all: of every rank
};

// What became of an operation that is no longer wanted.
enum class Cancelled {
    finished,   // it is over, or never was
    withdrawn,  // as if never called; it completes with Reason::withdrawn
    bound,      // other ranks count on it: only abort ends it
};

class Communicator {
public:
    Communicator(int rank, int size) : rank(rank), size(size) {}
    virtual ~Communicator() = default;

    const int rank, size;

    // Why these arguments cannot be served here, or nullptr. The shape of an operation has been checked already.
    virtual const char* refusal(const Operation& operation) const = 0;
    virtual void submit(Operation operation) = 0;
    virtual void abort(const std::string& why) = 0;
    virtual Cancelled cancel(uint64_t id) = 0;
    virtual void close(uint64_t id) = 0;  // completes as `id` when all before it are done and the connections are gone
    virtual void stop() = 0;              // aborts and joins; `completed` is not called any more
    virtual std::vector<Completion> take() = 0;
    virtual const Counters& sent() const = 0;
};

}  // namespace terse::collectives
