// Makes the connections between this rank and all others.
//
// The higher rank dials the lower one and proves who it is with the secret that the lower rank gave it through the
// rendezvous. An unknown caller is dropped at no cost to the others. A call that breaks before it is answered is made
// again.
//
//   0        4      8         12                       28
//   | magic  | rank | channel | secret of the listener |       → the listener answers with one byte
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "engines/congestion_control.h"
#include "engines/engine.h"
#include "engines/tcp/address.h"
#include "engines/tcp/descriptor.h"

namespace terse::collectives::tcp {

// The connections between two ranks.
enum Channel { collectives_channel, point_to_point_channel, keepalive_channel, channels };

class Connector {
public:
    // Listens. An address that cannot be reached is tried again for as long as an outage may take. Throws
    // std::runtime_error.
    Connector(int rank, int size, const std::string& address, Clock::duration outage);

    std::vector<std::string> addresses() const;
    void set_peers(const std::vector<std::string>& addresses);

    using Connected = std::function<void(Descriptor socket, int peer, int channel)>;
    // Calls `connected` for every peer and channel; a second call for the same one replaces the socket. Throws Failure
    // at the deadline, when `aborted` is set (after `wake`), or when a connection cannot be made.
    void connect(Clock::time_point deadline, const WakeEvent& wake, const std::atomic<bool>& aborted,
                 const Connected& connected);
    void stop_listening() { listener_ = Descriptor(); }
    bool is_on_this_machine(int peer) const { return same_machine(peers_[peer], here_); }

private:
    static constexpr size_t hello_bytes = 12 + secret_bytes;

    // A connection in the making: this rank's call, or one from a caller that has not proved yet who it is.
    struct Attempt {
        Descriptor socket;
        int peer = -1, channel = 0;  // −1: an unknown caller
        bool hello_sent = false;
        std::string error;  // of the last call
        Clock::time_point retry_at;
        size_t received = 0;
        uint8_t hello[hello_bytes] = {};
    };

    void dial(Attempt& attempt) const;
    bool continue_dialing(Attempt& attempt) const;
    bool read_hello(Attempt& attempt) const;
    [[noreturn]] void fail(int peer, const std::string& why) const;          // what this rank lacks
    [[noreturn]] void cannot_reach(int peer, const std::string& why) const;  // what the network does

    const int rank_, size_;
    const Clock::duration outage_;
    Clock::time_point outage_ends_;
    Address here_;
    Descriptor listener_;
    CongestionControl machine_default_{};
    std::vector<Address> mine_, peers_;  // [peer]: the address that this rank gave it; the one that it gave this rank
};

}  // namespace terse::collectives::tcp
