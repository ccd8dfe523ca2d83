// One thread's use of an engine: a slot for headers, a slot for payload, and one posted header receive per peer.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "communicator/counters.h"
#include "engines/engine.h"

namespace terse::collectives {

class Wire {
public:
    // `channel`: 0, of collectives, on slots 0 and 1; 1, of point-to-point operations, on slots 2 and 3.
    Wire(Engine& engine, Counters& counters, uint32_t channel);

    Engine& engine;
    const int rank, size;
    Clock::time_point deadline = Clock::time_point::max();  // of the running operation

    void post_header_receive(int peer);  // unless it is posted already
    void post_header_receives();         // of all peers

    std::vector<uint8_t> notes;  // of every rank, from the last all-to-all

    // A byte by which a receiver lets a sender go ahead. It travels among the payload, so both ranks keep to one order
    // of the two. The caller waits for the transfer.
    [[nodiscard]] std::unique_ptr<Transfer> send_go_ahead(int peer);
    void wait_for_go_ahead(int peer);

    // Memory that lives as long as the wire, for received segments that are still to be reduced.
    uint8_t* scratch(size_t bytes);

    // A receive starts when its header arrives. Until then it can be cancelled: its wait throws Reason::cancelled.
    void begin(bool may_be_cancelled);
    bool cancel();  // any thread

private:
    friend class Outgoing;
    friend class Incoming;
    struct Frame {  // a header, and the payload that travels with it
        std::vector<uint8_t> memory;
        bool arrived = false;
        std::unique_ptr<Transfer> transfer;  // destroyed before its memory
    };
    Frame& wait_for_header(int peer);
    Counters& counters_;
    const uint32_t header_slot_, payload_slot_;
    std::vector<Frame> frames_;
    std::unique_ptr<uint8_t[]> scratch_;
    size_t scratch_bytes_ = 0;

    std::mutex mutex_;
    enum { cancellable, cancelled, started } state_ = started;
    Transfer* awaited_ = nullptr;
};

}  // namespace terse::collectives
