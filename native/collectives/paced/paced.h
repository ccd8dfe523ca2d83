// A slow link in front of a fast engine: what a rank sends leaves at the link's rate and arrives after its latency. For measuring
// on one machine what a network would do, without root.
//
// Every rank has one full-duplex link, which all its groups share. Bytes, headers included, leave one after the other in the order
// in which they were handed over, whoever they are for; a transfer reaches the engine below when its last byte would have arrived.
// Payload from all peers shares the receiver's rate as well. Small messages, which ride with their header, pay on the sending side only.
#pragma once
#include <memory>
#include <mutex>

#include "../engine.h"

namespace terse::collectives {

// Which bytes are on one rank's link, and when.
class Link {
public:
    Link(double bits_per_second, double latency_seconds);

    // Books the way out behind what is there already; returns when the last byte arrives at the other end.
    Clock::time_point send(size_t bytes);
    // Books the way in; `posted` is when the receiver was ready, before which nothing flows. Returns when the last byte is in.
    Clock::time_point receive(size_t bytes, Clock::time_point posted);
    Clock::duration time_of(size_t bytes) const;

private:
    const double nanoseconds_per_byte_;
    const Clock::duration latency_;
    std::mutex mutex_;
    Clock::time_point out_, in_;  // when each way is free again
};

std::unique_ptr<Engine> make_paced(std::unique_ptr<Engine> engine, std::shared_ptr<Link> link);

}  // namespace terse::collectives
