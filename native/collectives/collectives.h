// The collectives, each written once over engine.h. All block the calling (wire) thread; all throw Failure.
#pragma once
#include <functional>
#include <optional>

#include "message.h"
#include "operation.h"

namespace terse::collectives {

void all_reduce(Wire& wire, const Operation& operation);
void reduce_scatter(Wire& wire, const Operation& operation);
void all_gather(Wire& wire, const Operation& operation);
void all_to_all(Wire& wire, const Operation& operation);
void broadcast(Wire& wire, const Operation& operation);
void gather(Wire& wire, const Operation& operation);
void scatter(Wire& wire, const Operation& operation);
void send(Wire& wire, const Operation& operation);
void recv(Wire& wire, const Operation& operation);
void barrier(Wire& wire, const Operation& operation);

// ring.cc: chunks[r] belongs to rank r. After n − 1 steps it holds the reduction there; after 2n − 2 steps everywhere.
void ring(Wire& wire, const Operation& operation, const std::vector<BufferView>& chunks, int steps);

// direct.cc: every rank sends chunks[r] to each rank r and adds what it gets in rank order; the sum replaces `into`. For small
// sums. `count` is what errors speak of: the elements that the caller gave.
void direct(Wire& wire, const Operation& operation, const std::vector<BufferView>& chunks, const BufferView& into, uint64_t count);

// straight.cc: to each other rank what leaving(rank) is, from each what arriving(rank) is; `came` hears of every header.
struct Parcel {
    BufferView memory;
    Message message;
};
void straight(Wire& wire, const std::function<Parcel(int)>& leaving, const std::function<Parcel(int)>& arriving,
              const std::function<void(int, const Incoming&)>& came = [](int, const Incoming&) {});

// root.cc: on entering, every rank sends the next one a header with the root that it means, bare unless payload goes there at once
// anyway, and the first that it waits for is the header of the rank before. Where roots differ, so do those of two neighbours, and
// they notice although the payload that one of them waits for is never sent. Made before anything is waited for; check() comes
// after what this rank can send without, and before any other wait.
class Root {
public:
    Root(Wire& wire, const Operation& operation, uint64_t count);
    void check();

private:
    Wire& wire_;
    const Message message_;
    const int before_;
    const bool hears_;
    std::optional<Outgoing> out_;
};

// Where direct is taken: few bytes, and few altogether.
inline bool is_small(uint64_t bytes, int ranks) { return bytes <= inline_bytes && bytes * (ranks - 1) <= 65536; }

inline BufferView slice(const BufferView& x, uint64_t from, uint64_t to) {
    return {static_cast<uint8_t*>(x.data) + from * bytes_of(x.dtype), static_cast<size_t>(to - from), x.dtype, x.on_cpu};
}

}  // namespace terse::collectives
