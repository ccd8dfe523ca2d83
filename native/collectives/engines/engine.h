// The interface of an engine: it carries bytes between two ranks, and the algorithms of this folder run on it.
//
// Messages between two ranks on one slot arrive in the order in which they were sent; slots are independent. A receive
// may have more room than its message needs. In some engines a message longer than its receive ends the process, so a
// payload receive is posted only after a header (wire/header.h) has announced its length.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "communicator/failure.h"

namespace terse::collectives {

// Slots 0 and 1 carry collectives, 2 and 3 point-to-point operations. Even slots carry headers, into room for the
// largest one; odd slots carry payload, into exactly the room that it needs.
inline bool is_payload(uint32_t slot) { return slot & 1; }
inline bool is_point_to_point(uint32_t slot) { return slot >= 2; }

using Clock = std::chrono::steady_clock;

// One send or receive. Destroying it releases its buffer at once, finished or not.
class Transfer {
public:
    virtual ~Transfer() = default;
    virtual void wait(Clock::time_point deadline) = 0;  // throws Failure

    // Any thread, for the receive of a header: the running or the next wait throws Reason::aborted unless the header
    // has arrived. The transfer can be waited for again.
    virtual void interrupt() noexcept {}
};

class Engine {
public:
    Engine(int rank, int size) : rank(rank), size(size) {}
    virtual ~Engine() = default;

    const int rank, size;

    // True: nothing may break until every rank has finished connecting; then `established` is called.
    virtual bool connect(Clock::time_point) { return false; }
    virtual void established() {}

    // Neither blocks. A broken connection is reported by `wait`. The transfer uses the buffer until it is waited for or
    // destroyed.
    virtual std::unique_ptr<Transfer> send(int peer, uint32_t slot, const void* data, size_t bytes) = 0;
    virtual std::unique_ptr<Transfer> recv(int peer, uint32_t slot, void* data, size_t room) = 0;

    // True: a send starts only when the receiver has announced its room. Then receives are posted early, and transfers
    // are made large.
    virtual bool waits_for_room() const { return false; }

    // True: what goes to this peer meets other ranks' streams in a switch, which drops what it has no room for. The
    // peer says the same of this rank.
    virtual bool is_behind_switch(int /*peer*/) const { return false; }

    // True: a packet takes long to this peer and back, so that whoever waits for one part before the next leaves a link
    // idle. Each rank decides for itself.
    virtual bool is_far(int /*peer*/) const { return false; }

    // Any thread, at any time: every running and later wait throws Reason::aborted.
    virtual void abort() noexcept = 0;

    // After abort, any thread: closes the connections so that the other ranks notice. Transfers may still exist.
    virtual void disconnect() noexcept {}

    // When no transfer is left: frees everything. After it only abort may be called.
    virtual void release() noexcept {}

    // Called before every operation: on the wire thread with the number of a collective, on other threads with 0.
    // Injects faults.
    virtual void before(uint32_t /*collective*/) {}
};

// An engine whose ranks exchange addresses through the rendezvous before they connect.
class RendezvousEngine : public Engine {
public:
    using Engine::Engine;
    virtual std::vector<std::string> addresses() const = 0;  // [peer]: where that peer reaches this rank; [rank] is
                                                             // empty
    virtual void set_peers(std::vector<std::string> addresses) = 0;  // [peer]: where this rank reaches that peer;
                                                                     // before connect
};

}  // namespace terse::collectives
