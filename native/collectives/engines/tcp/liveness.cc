// A peer may be late for hours without being lost. Data sent to it then waits in full buffers, where the kernel cannot
// tell a late reader from a cut cable: a limit on unacknowledged data (TCP_USER_TIMEOUT) would end the connection. So
// three checks find a dead machine instead:
//
// 1. Keepalive. The third connection carries no data, so the kernel's keepalive always runs on it, and the other
//    machine's kernel answers. A thread that waits looks whether that connection has ended.
// 2. Acknowledgements. A network may lose one connection and keep the others. The other kernel acknowledges all data
//    that arrives, and answers window probes even if its process is late. The check sees probes that stay unanswered.
//    On an idle connection the keepalive probes.
// 3. Progress. A device in between may answer for a machine that it no longer reaches. A sender starts a segment only
//    when all of it is there, and then sends until it has left. So a receiver with a part of a segment waits for no
//    late rank, and breaks the connection if the rest does not arrive. Between segments this says nothing: a rank that
//    passes on other ranks' data may stop there.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "engines/tcp/stream.h"

namespace terse::collectives::tcp {
namespace {

constexpr int payload_factor = 3;  // half a payload segment may take so much longer than half a header

}  // namespace

void Stream::check_keepalive() {
    pollfd ends{keepalive_fd, 0, 0};
    if (poll(&ends, 1, 0) > 0 && (ends.revents & (POLLERR | POLLHUP))) broken = "its machine no longer answers";
}

// Checks that are far apart belong to different waits, and what the earlier one saw does not count.
bool Stream::check_liveness(Clock::time_point now, Clock::duration silence_limit) {
    if (fd < 0 || !broken.empty())
        return true;  // a peer that has closed its group breaks its stream; that does not end this wait
    if (now - checked_ > 3 * check_interval) {
        unacknowledged_since_.reset();
        stalled_since_.reset();
    }
    checked_ = now;
    check_acknowledgements(now, silence_limit);
    if (!sends && broken.empty()) check_progress(now, silence_limit);
    return broken.empty();
}

void Stream::check_acknowledgements(Clock::time_point now, Clock::duration silence_limit) {
    tcp_info info{};
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return;
    if (info.tcpi_unacked == 0 && info.tcpi_probes == 0) return unacknowledged_since_.reset();
    if (!unacknowledged_since_) unacknowledged_since_ = now;
    if (now - std::max(*unacknowledged_since_, now - std::chrono::milliseconds(info.tcpi_last_ack_recv)) >=
        silence_limit)
        broken = "data sent over it is no longer acknowledged";
}

void Stream::check_progress(Clock::time_point now, Clock::duration silence_limit) {
    const QueuedTransfer* transfer = queue.empty() ? nullptr : queue.front();
    if (!transfer || transfer->moved == 0) return stalled_since_.reset();
    if (!stalled_since_ || stalled_at_ != moved_) stalled_since_ = now;
    stalled_at_ = moved_;
    // A header leaves in one piece. The rest of a payload segment may wait at its sender, for the thread and for the
    // link.
    if (now - *stalled_since_ < (transfer->has_length ? silence_limit : payload_factor * silence_limit)) return;
    broken = std::string("its data stopped in the middle of a ") + (transfer->has_length ? "header" : "message");
}

}  // namespace terse::collectives::tcp
