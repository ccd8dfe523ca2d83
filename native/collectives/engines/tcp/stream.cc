#include "engines/tcp/stream.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engines/tcp/address.h"

namespace terse::collectives::tcp {
namespace {

constexpr size_t turn_bytes = 256 << 10;       // that one stream may move before the next one has its turn
constexpr size_t low_water_bytes = 128 << 10;  // a receive of at least as many bytes is not woken for fewer

}  // namespace

bool Stream::advance() {
    size_t budget = turn_bytes;
    bool any = false;
    while (is_active() && budget > 0) {
        QueuedTransfer& transfer = *queue.front();
        const ssize_t count = move(transfer);
        if (count == 0) break;
        if (count < 0) {
            broken = sends || count == -1 ? describe_errno(errno) : "closed by the other side";
            break;
        }
        any = true;
        budget -= std::min(budget, static_cast<size_t>(count));
        transfer.moved += count;
        moved_ += count;
        if (!sends && transfer.has_length && transfer.moved == sizeof transfer.length && !accept_length(transfer))
            break;
        if (transfer.moved == transfer.length_bytes() + transfer.bytes) {
            transfer.done = true;
            queue.pop_front();
        }
    }
    return any;
}

// The length of a received header has arrived.
bool Stream::accept_length(QueuedTransfer& transfer) {
    uint32_t bytes;
    std::memcpy(&bytes, transfer.length, sizeof bytes);
    if (bytes <= transfer.bytes) {
        transfer.bytes = bytes;
        return true;
    }
    broken = "its data does not begin like a message";
    return false;
}

// Returns the bytes moved, 0 if none can be moved now, −1 with errno, −2 at the end of the stream.
ssize_t Stream::move(QueuedTransfer& transfer) {
    const size_t before = transfer.length_bytes();
    iovec vectors[2];
    int count = 0;
    if (transfer.moved < before) vectors[count++] = {transfer.length + transfer.moved, before - transfer.moved};
    const bool has_data = sends || transfer.moved >= before;  // a receive first reads the length
    const size_t at = transfer.moved > before ? transfer.moved - before : 0;
    if (has_data && transfer.bytes > at)
        vectors[count++] = {transfer.data + at, std::min(transfer.bytes - at, turn_bytes)};
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = count;
    if (!sends) {
        const size_t left = transfer.bytes - at, low_water = has_data && left >= low_water_bytes ? low_water_bytes : 1;
        if (low_water != low_water_) {
            const int value = static_cast<int>(low_water);
            if (setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value) == 0) low_water_ = low_water;
        }
    }
    for (;;) {
        const ssize_t moved = sends ? sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT)
                                    : recvmsg(fd, &message, MSG_DONTWAIT);
        if (moved > 0) return moved;
        if (moved == 0) return -2;
        if (errno == EINTR) continue;
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    }
}

}  // namespace terse::collectives::tcp
