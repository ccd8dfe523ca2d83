// What a transport must do so that the collectives of this folder run on it: carry bytes between two ranks.
//
// Messages between two ranks on one slot arrive in the order in which they were sent; slots are independent. A receive may be
// posted with more room than the message needs. A message longer than its receive ends the process in some engines, so
// nothing is ever posted for a length that a header (message.h) has not announced.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace terse::collectives {

// Slots: 0 and 1 are the collectives', 2 and 3 those of send and recv. Headers go on the even one, into room for the largest;
// payload on the odd one, into exactly the room that it needs.
inline bool is_exact(uint32_t slot) { return slot & 1; }
inline bool is_direct(uint32_t slot) { return slot >= 2; }

using Clock = std::chrono::steady_clock;

enum class Reason {
    transport,  // the connection to `rank` broke; who is to blame is not known here
    mismatch,   // `rank` calls something else than this rank
    timeout,    // `rank` has not come
    aborted,    // somebody called abort, here or elsewhere
    argument,   // cannot be done with these arguments; the communicator stays usable
    lost,       // `rank` is gone for certain
    device,     // this rank's own device, or the library that drives it; no other rank is to blame
    withdrawn,  // taken back before it began; the communicator stays usable
};

struct Failure : std::runtime_error {
    Failure(Reason reason, int rank, const std::string& sentence) : std::runtime_error(sentence), reason(reason), rank(rank) {}
    Reason reason;
    int rank;  // the other side, or -1
};

// One send or receive under way. Destroying it gives its memory back at once, finished or not.
class Transfer {
public:
    virtual ~Transfer() = default;
    virtual void wait(Clock::time_point deadline) = 0;  // throws Failure

    // From any thread, for the receive of a header: its wait, running or the next one, throws Reason::aborted unless it has
    // arrived. It may be waited for again.
    virtual void interrupt() noexcept {}
};

class Engine {
public:
    Engine(int rank, int size) : rank(rank), size(size) {}
    virtual ~Engine() = default;

    const int rank, size;

    // True: every rank must have finished this before anything may break; then `established` is called.
    virtual bool connect(Clock::time_point) { return false; }
    virtual void established() {}

    // Neither blocks; a connection that is already broken is reported by wait. The memory belongs to the transfer until it
    // is waited for or destroyed.
    virtual std::unique_ptr<Transfer> send(int peer, uint32_t slot, const void* data, size_t bytes) = 0;
    virtual std::unique_ptr<Transfer> recv(int peer, uint32_t slot, void* data, size_t room) = 0;

    // Bytes leave only when the other side has said that there is room for them: then receives are posted long before they are
    // needed, and what can be one transfer is not two.
    virtual bool waits_for_room() const { return false; }

    // From any thread, at any time: every wait, running or to come, throws Reason::aborted.
    virtual void abort() noexcept = 0;

    // After abort, from any thread: breaks the connections, so that the other ranks notice. Transfers may still exist.
    virtual void disconnect() noexcept {}

    // The end: no transfer is left. Says goodbye and frees what the engine holds; only abort may follow.
    virtual void release() noexcept {}

    // Called before every operation, with the number of a collective on the wire thread, and with 0 before a send or recv on
    // theirs; where faults are injected.
    virtual void before(uint32_t /*collective*/) {}
};

// An engine whose ranks must hear from each other before they can connect; the rendezvous carries what they say.
class MeetingEngine : public Engine {
public:
    using Engine::Engine;
    virtual std::vector<std::string> addresses() const = 0;         // [peer]: where this rank hears from it; [rank] is empty
    virtual void set_peers(std::vector<std::string> addresses) = 0;  // [peer]: where it hears from this rank; before connect
};

}  // namespace terse::collectives
