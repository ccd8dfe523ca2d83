// Headers that no rank sends.
#include <cstring>
#include <deque>
#include <limits>

#include "algorithms/algorithms.h"
#include "checks/core/check.h"

namespace terse::collectives::check {
namespace {

// Rank 0 of two. Rank 1 sends back what rank 0 has sent, sometimes changed.
class Echo final : public Engine {
public:
    explicit Echo(uint64_t seed) : Engine(0, 2), random_(seed) {}

    struct Sent final : Transfer {
        void wait(Clock::time_point) override {}
    };
    struct Received final : Transfer {
        Received(Echo& engine, uint32_t slot, void* data, size_t room)
            : engine(engine), slot(slot), data(static_cast<uint8_t*>(data)), room(room) {}
        void wait(Clock::time_point) override {
            if (is_payload(slot)) return static_cast<void>(std::memset(data, 1, room));
            if (engine.sent_.empty()) throw Failure(Reason::timeout, 1, "no more messages");
            auto bytes = std::move(engine.sent_.front());
            engine.sent_.pop_front();
            std::memcpy(data, bytes.data(), std::min(room, engine.change(bytes)));
        }
        Echo& engine;
        const uint32_t slot;
        uint8_t* const data;
        const size_t room;
    };
    std::unique_ptr<Transfer> send(int, uint32_t slot, const void* data, size_t bytes) override {
        const auto* from = static_cast<const uint8_t*>(data);
        if (!is_payload(slot)) sent_.emplace_back(from, from + bytes);
        return std::make_unique<Sent>();
    }
    std::unique_ptr<Transfer> recv(int, uint32_t slot, void* data, size_t room) override {
        return std::make_unique<Received>(*this, slot, data, room);
    }
    void abort() noexcept override {}

private:
    size_t change(std::vector<uint8_t>& bytes) {
        static const uint64_t words[] = {0,
                                         1,
                                         2,
                                         8191,
                                         8192,
                                         8193,
                                         1 << 20,
                                         UINT32_MAX,
                                         uint64_t{1} << 40,
                                         uint64_t{1} << 61,
                                         INT64_MAX - 1,
                                         INT64_MAX,
                                         uint64_t{1} << 63,
                                         UINT64_MAX};
        for (uint64_t changes = below(random_, 3); changes > 0; changes--) {
            const uint64_t word = words[below(random_, std::size(words))];
            switch (below(random_, 6)) {
                case 0: bytes[below(random_, std::min<size_t>(bytes.size(), 32))] ^= 1 << below(random_, 8); break;
                case 1: bytes[below(random_, bytes.size())] = static_cast<uint8_t>(random_()); break;
                case 2: std::memcpy(bytes.data() + 16, &word, 8); break;  // count
                case 3: std::memcpy(bytes.data() + 24, &word, 8); break;  // bytes
                case 4: std::memcpy(bytes.data() + 16, &word, 8), std::memcpy(bytes.data() + 24, &word, 8); break;
                case 5: bytes.resize(std::max<size_t>(32, below(random_, 9000))); break;
            }
        }
        return below(random_, 20) == 0 ? below(random_, bytes.size()) : bytes.size();
    }
    Random random_;
    std::deque<std::vector<uint8_t>> sent_;
};

}  // namespace

bool check_headers(uint64_t seed) {
    Random random(seed);
    const size_t lengths[] = {0, 1, 7, 1000, 2048, 2049, 40'000};
    std::vector<float> x(lengths[below(random, 7)], 1.f), y(x), z(x), w(x);
    Operation operation;
    static const Kind kinds[] = {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather,
                                 Kind::all_to_all, Kind::broadcast,      Kind::recv,
                                 Kind::barrier,    Kind::gather,         Kind::scatter};
    operation.kind = kinds[below(random, std::size(kinds))];
    operation.reduction = static_cast<Reduction>(below(random, 5));
    operation.sequence = 1;
    operation.peer = is_rooted(operation.kind) ? static_cast<int>(below(random, 2)) : 1;
    const bool root = operation.peer == 0;
    switch (operation.kind) {
        case Kind::reduce_scatter:
        case Kind::all_gather: operation.parts = {view_of(x), view_of(y)}; break;
        case Kind::all_to_all:
            operation.parts = {view_of(x), view_of(y)}, operation.incoming = {view_of(z), view_of(w)};
            break;
        case Kind::gather:
            operation.parts = {view_of(x)};
            if (root) operation.incoming = {view_of(y), view_of(z)};
            break;
        case Kind::scatter:
            operation.incoming = {view_of(x)};
            if (root) operation.parts = {view_of(y), view_of(z)};
            break;
        case Kind::barrier: break;
        default: operation.parts = {view_of(x)};
    }
    Echo engine(seed);
    Counters counters;
    Wire wire(engine, counters, operation.kind == Kind::recv);
    wire.post_header_receives();
    if (operation.kind == Kind::recv || operation.kind == Kind::broadcast || is_rooted(operation.kind)) {
        // In these operations rank 0 receives a message that it has not sent itself.
        Message message = message_of(operation, x.size(), x.size() * sizeof(float),
                                     is_rooted(operation.kind) ? static_cast<uint32_t>(operation.peer) : 0);
        if (operation.kind == Kind::recv) message.kind = Kind::send;
        Outgoing out(wire, 1, message);
        out.push(x.data(), x.size() * sizeof(float));
    }
    try {
        switch (operation.kind) {
            case Kind::all_reduce: all_reduce(wire, operation); break;
            case Kind::reduce_scatter: reduce_scatter(wire, operation); break;
            case Kind::all_gather: all_gather(wire, operation); break;
            case Kind::all_to_all: all_to_all(wire, operation); break;
            case Kind::broadcast: broadcast(wire, operation); break;
            case Kind::gather: gather(wire, operation); break;
            case Kind::scatter: scatter(wire, operation); break;
            case Kind::recv: recv(wire, operation); break;
            default: barrier(wire, operation);
        }
        return true;
    } catch (const Failure& failure) {
        require(failure.rank == 1, "a failure does not name rank 1");
        require(std::strlen(failure.what()) > 0, "a failure has no text");
        return false;
    }
}

}  // namespace terse::collectives::check
