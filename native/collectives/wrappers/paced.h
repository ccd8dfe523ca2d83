// An emulated link: an engine in front of another one, which delays messages by a link's rate and latency. It measures
// on one machine what a network would do, without root.
//
// Every rank has one full-duplex link, which all its groups share. All bytes, headers too, leave one after the other in
// the order of the sends, whatever their destination; but a message of one packet does not wait for messages of other
// streams, as where the kernel's queue is fair (fq_codel, Linux distributions' default). A stream is what a group sends
// to a peer. A transfer reaches the engine below when its last byte would have arrived. On the receiver, payload from
// all peers shares the link's rate. A small message, which travels with its header, takes time on the sender's link
// only.
#pragma once
#include <memory>
#include <mutex>

#include "engines/distance.h"
#include "engines/engine.h"

namespace terse::collectives {

// When the bytes of one rank are on its link.
class Link {
public:
    Link(double bits_per_second, double latency_seconds);

    // Reserves time on the outgoing direction, after earlier sends. Returns when the last byte reaches the other end.
    Clock::time_point send(size_t bytes);
    // The same before earlier sends, after those of this kind.
    Clock::time_point send_first(size_t bytes);
    // Reserves time on the incoming direction, not before `posted`, when the receive was posted. Returns when the last
    // byte has arrived.
    Clock::time_point receive(size_t bytes, Clock::time_point posted);
    Clock::duration time_of(size_t bytes) const;
    bool is_far() const { return 2 * latency_ >= std::chrono::microseconds(near_us); }

private:
    const double nanoseconds_per_byte_;
    const Clock::duration latency_;
    std::mutex mutex_;
    Clock::time_point out_, in_;  // when each direction is free again
    Clock::time_point first_;     // when the outgoing direction is free of messages that went first
};

std::unique_ptr<Engine> make_paced(std::unique_ptr<Engine> engine, std::shared_ptr<Link> link);

}  // namespace terse::collectives
