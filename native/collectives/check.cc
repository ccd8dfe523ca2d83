// The wire without Node, under a sanitizer: worlds of ranks that are threads, and headers that no rank sends.
//
//     cmake -S . -B build/thread -DTERSE_SANITIZER=thread && cmake --build build/thread --target collectives_check
//
//     collectives_check worlds <rounds> <seed>
//     collectives_check headers <rounds> <seed>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "collectives.h"
#include "loopback/loopback.h"
#include "paced/paced.h"
#include "tcp/tcp.h"
#include "wire_communicator.h"

using namespace terse::collectives;
using terse::DType;
using terse::BufferView;

namespace {

uint64_t seed_of_round;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "seed %llu: %s\n", static_cast<unsigned long long>(seed_of_round), what);
    std::abort();
}

using Random = std::mt19937_64;
uint64_t below(Random& random, uint64_t n) { return random() % n; }

// --- Worlds ---

// A communicator and who waits for its operations.
class Rank {
public:
    explicit Rank(std::unique_ptr<Engine> engine) : communicator_(std::move(engine), std::chrono::seconds(60), [this] { ring(); }) {}

    // Its result, or why not; `then` is called while it is pending.
    std::optional<Failure> operate(Operation operation, const std::function<void(uint64_t)>& then = {}) {
        const uint64_t id = submit(std::move(operation));
        if (then) then(id);
        return wait(id);
    }
    uint64_t submit(Operation operation) {
        std::unique_lock lock(mutex_);
        const uint64_t id = operation.id = ++last_;
        lock.unlock();
        communicator_.submit(std::move(operation));
        return id;
    }
    std::optional<Failure> wait(uint64_t id) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return done_.contains(id); });
        return std::move(done_.extract(id).mapped());
    }
    void close() {
        std::unique_lock lock(mutex_);
        const uint64_t id = ++last_;
        lock.unlock();
        communicator_.close(id);
        wait(id);
    }
    WireCommunicator& communicator() { return communicator_; }

private:
    void ring() {  // on a wire thread, which holds the communicator's lock: what is new is taken elsewhere
        std::lock_guard lock(bell_);
        rung_ = true;
        rings_.notify_all();
    }
    void collect() {
        std::unique_lock bell(bell_);
        for (;;) {
            rings_.wait(bell, [this] { return rung_ || ending_; });
            if (!rung_) return;
            rung_ = false;
            bell.unlock();
            auto some = communicator_.take();
            {
                std::lock_guard lock(mutex_);
                for (Completion& each : some) done_.emplace(each.id, std::move(each.failure));
                changed_.notify_all();
            }
            bell.lock();
        }
    }

    std::mutex bell_, mutex_;
    std::condition_variable rings_, changed_;
    bool rung_ = false, ending_ = false;
    uint64_t last_ = 0;
    std::map<uint64_t, std::optional<Failure>> done_;
    WireCommunicator communicator_;
    std::thread collector_{[this] { collect(); }};

public:
    ~Rank() {
        communicator_.stop();
        {
            std::lock_guard lock(bell_);
            ending_ = true;
            rings_.notify_all();
        }
        collector_.join();
    }
};

std::vector<std::unique_ptr<Engine>> engines_of(bool tcp, int n) {
    if (!tcp) return make_loopback(n);
    std::vector<std::unique_ptr<MeetingEngine>> all;
    for (int rank = 0; rank < n; rank++) all.push_back(make_tcp(rank, n, "127.0.0.1", std::chrono::seconds(20), std::chrono::seconds(10)));
    std::vector<std::unique_ptr<Engine>> engines;
    for (int rank = 0; rank < n; rank++) {
        std::vector<std::string> addresses;
        for (int peer = 0; peer < n; peer++) addresses.push_back(peer == rank ? std::string() : all[peer]->addresses()[rank]);
        all[rank]->set_peers(std::move(addresses));
    }
    for (auto& each : all) engines.push_back(std::move(each));
    return engines;
}

BufferView buffer_of(std::vector<float>& values) { return {values.data(), values.size(), DType::f32, true}; }

// One rank's part in what all do alike, by the round's seed: sums, exchanges, sends and receives, and then an end.
void take_part(Rank& self, int rank, int n, uint64_t seed, bool tcp) {
    Random random(seed), own(seed * 31 + rank);
    const auto fine = [](const std::optional<Failure>& failure) { require(!failure, failure ? failure->what() : ""); };
    Operation connect;
    connect.kind = Kind::connect;
    fine(self.operate(std::move(connect)));

    const size_t lengths[] = {0, 1, 1000, 70'000, 600'000};
    for (uint64_t k = 2 + below(random, 3); k > 0; k--) {
        std::vector<float> x(lengths[below(random, 5)], 1.f + rank), y(lengths[below(random, 5)], 2.f), z(x.size());
        const int root = static_cast<int>(below(random, n)), next = (rank + 1) % n, before = (rank + n - 1) % n;
        Operation sum, spread, leaves, comes;
        sum.kind = Kind::all_reduce;
        sum.parts = {buffer_of(x)};
        spread.kind = Kind::broadcast;
        spread.peer = root;
        spread.parts = {buffer_of(y)};
        if (rank == root) y.assign(y.size(), 5.f);
        std::vector<float> gift(x.size(), static_cast<float>(rank));
        leaves.kind = Kind::send;
        leaves.peer = next;
        leaves.parts = {buffer_of(gift)};
        comes.kind = Kind::recv;
        comes.peer = before;
        comes.parts = {buffer_of(z)};
        std::vector<uint64_t> ids = {self.submit(std::move(sum)), self.submit(std::move(spread)), self.submit(std::move(leaves)), self.submit(std::move(comes))};
        for (const uint64_t id : ids) fine(self.wait(id));
        for (const float each : x) require(each == n * (n + 1) / 2, "a sum is wrong");
        for (const float each : y) require(each == 5.f, "a broadcast is wrong");
        for (const float each : z) require(each == before, "a message is wrong");
    }

    // A receive that nobody sends to can be taken back, from another thread.
    std::vector<float> never(10);
    Operation idle;
    idle.kind = Kind::recv;
    idle.peer = (rank + 1) % n;
    idle.parts = {buffer_of(never)};
    const auto withdrawn = self.operate(std::move(idle), [&](uint64_t id) { require(self.communicator().cancel(id) == Cancelled::withdrawn, "an idle receive is bound"); });
    require(withdrawn && withdrawn->reason == Reason::withdrawn, "a receive was not withdrawn");

    // Until here no rank may leave: one that has left is a broken connection.
    Operation meet;
    meet.kind = Kind::barrier;
    fine(self.operate(std::move(meet)));
    const uint64_t way = below(random, 4);
    if (way == 0) return self.close();
    std::vector<float> x(2'000'000, 1.f), z(1'000'000);
    Operation sum, comes;
    sum.kind = Kind::all_reduce;
    sum.parts = {buffer_of(x)};
    comes.kind = Kind::recv;
    comes.peer = (rank + 1) % n;
    comes.parts = {buffer_of(z)};
    const std::vector<uint64_t> ids = {self.submit(std::move(sum)), self.submit(std::move(comes))};
    const auto pause = std::chrono::microseconds(below(own, 3000));
    // Over loopback only a rank's own abort ends its waits: there it is everybody's turn.
    const bool mine = static_cast<int>(below(random, n)) == rank || !tcp;
    const auto hear = [&] {  // as the rendezvous would tell it
        self.wait(ids[0]);
        self.communicator().abort("it is over");
        self.wait(ids[1]);
    };
    if (way == 1) {  // one aborts, and the others see its connections break
        std::thread other([&] {
            std::this_thread::sleep_for(pause);
            if (mine) self.communicator().abort("enough");
        });
        hear();
        other.join();
        return self.close();
    }
    if (way == 2) {  // all stop with operations under way
        std::this_thread::sleep_for(pause);
        return self.communicator().stop();
    }
    std::this_thread::sleep_for(pause);  // one vanishes
    if (mine) return self.communicator().stop();
    hear();
    self.close();
}

void world(uint64_t seed) {
    Random random(seed);
    const int n = 2 + static_cast<int>(below(random, 3));
    const bool tcp = below(random, 3) > 0;
    std::vector<std::unique_ptr<Rank>> ranks;
    const bool paced = below(random, 3) == 0;
    for (auto& engine : engines_of(tcp, n)) {
        if (paced) engine = make_paced(std::move(engine), std::make_shared<Link>(1e9, 1e-4));
        ranks.push_back(std::make_unique<Rank>(std::move(engine)));
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < n; rank++) threads.emplace_back([&, rank] { take_part(*ranks[rank], rank, n, seed, tcp); });
    for (std::thread& each : threads) each.join();
}

// --- Headers ---

// The other rank of two says what this one says, and sometimes something else.
class Echo final : public Engine {
public:
    explicit Echo(uint64_t seed) : Engine(0, 2), random_(seed) {}

    struct Sent final : Transfer {
        void wait(Clock::time_point) override {}
    };
    struct Came final : Transfer {
        Came(Echo& engine, uint32_t slot, void* data, size_t room) : engine(engine), slot(slot), data(static_cast<uint8_t*>(data)), room(room) {}
        void wait(Clock::time_point) override {
            if (is_exact(slot)) return static_cast<void>(std::memset(data, 1, room));
            if (engine.said_.empty()) throw Failure(Reason::timeout, 1, "nothing more is said");
            auto bytes = std::move(engine.said_.front());
            engine.said_.pop_front();
            std::memcpy(data, bytes.data(), std::min(room, engine.change(bytes)));
        }
        Echo& engine;
        const uint32_t slot;
        uint8_t* const data;
        const size_t room;
    };
    std::unique_ptr<Transfer> send(int, uint32_t slot, const void* data, size_t bytes) override {
        const auto* from = static_cast<const uint8_t*>(data);
        if (!is_exact(slot)) said_.emplace_back(from, from + bytes);
        return std::make_unique<Sent>();
    }
    std::unique_ptr<Transfer> recv(int, uint32_t slot, void* data, size_t room) override { return std::make_unique<Came>(*this, slot, data, room); }
    void abort() noexcept override {}

private:
    size_t change(std::vector<uint8_t>& bytes) {
        static const uint64_t words[] = {0, 1, 2, 8191, 8192, 8193, 1 << 20, UINT32_MAX, uint64_t{1} << 40, uint64_t{1} << 61, INT64_MAX - 1, INT64_MAX, uint64_t{1} << 63, UINT64_MAX};
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
    std::deque<std::vector<uint8_t>> said_;
};

// What was asked of one operation: it ends, as it should or with a Failure that names rank 1, and touches nothing but its memory.
bool header(uint64_t seed) {
    Random random(seed);
    const size_t lengths[] = {0, 1, 7, 1000, 2048, 2049, 40'000};
    std::vector<float> x(lengths[below(random, 7)], 1.f), y(x), z(x), w(x);
    Operation operation;
    static const Kind kinds[] = {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all, Kind::broadcast, Kind::recv, Kind::barrier, Kind::gather, Kind::scatter};
    operation.kind = kinds[below(random, std::size(kinds))];
    operation.reduction = static_cast<Reduction>(below(random, 5));
    operation.sequence = 1;
    operation.peer = is_rooted(operation.kind) ? static_cast<int>(below(random, 2)) : 1;
    const bool root = operation.peer == 0;
    switch (operation.kind) {
        case Kind::reduce_scatter:
        case Kind::all_gather: operation.parts = {buffer_of(x), buffer_of(y)}; break;
        case Kind::all_to_all: operation.parts = {buffer_of(x), buffer_of(y)}, operation.incoming = {buffer_of(z), buffer_of(w)}; break;
        case Kind::gather:
            operation.parts = {buffer_of(x)};
            if (root) operation.incoming = {buffer_of(y), buffer_of(z)};
            break;
        case Kind::scatter:
            operation.incoming = {buffer_of(x)};
            if (root) operation.parts = {buffer_of(y), buffer_of(z)};
            break;
        case Kind::barrier: break;
        default: operation.parts = {buffer_of(x)};
    }
    Echo engine(seed);
    Counters counters;
    Wire wire(engine, counters, operation.kind == Kind::recv);
    wire.listen();
    if (operation.kind == Kind::recv || operation.kind == Kind::broadcast || is_rooted(operation.kind)) {
        // These hear what they do not say themselves.
        Message message = message_of(operation, x.size(), x.size() * sizeof(float), is_rooted(operation.kind) ? static_cast<uint32_t>(operation.peer) : 0);
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
        require(failure.rank == 1, "a failure does not name the rank that it is about");
        require(std::strlen(failure.what()) > 0, "a failure says nothing");
        return false;
    }
}

}  // namespace

int main(int count, char** arguments) {
    const std::string what = count > 1 ? arguments[1] : "";
    if (count != 4 || (what != "worlds" && what != "headers")) {
        std::fprintf(stderr, "collectives_check worlds|headers <rounds> <seed>\n");
        return 2;
    }
    const uint64_t rounds = std::strtoull(arguments[2], nullptr, 10), seed = std::strtoull(arguments[3], nullptr, 10);
    uint64_t taken = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        seed_of_round = seed + round;
        if (what == "worlds") world(seed_of_round);
        else taken += header(seed_of_round);
    }
    std::printf("%s: %llu rounds from seed %llu", what.c_str(), static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(seed));
    if (what == "headers") std::printf(", %llu of them taken", static_cast<unsigned long long>(taken));
    std::printf("\n");
}
