// Worlds of ranks that are threads of this process: they run operations and end in every way.
#include <condition_variable>
#include <map>
#include <thread>

#include "checks/core/check.h"
#include "communicator/wire_communicator.h"
#include "engines/loopback/loopback.h"
#include "engines/tcp/tcp.h"
#include "wrappers/paced.h"
#include "wrappers/wrapper.h"

namespace terse::collectives::check {
namespace {

// A communicator, and blocking calls of its operations.
class Rank {
public:
    explicit Rank(std::unique_ptr<Engine> engine)
        : communicator_(std::move(engine), std::chrono::seconds(60), [this] { on_completed(); }) {}

    // Returns the failure, if there is one. `while_pending` gets the operation's id while it is pending.
    std::optional<Failure> operate(Operation operation, const std::function<void(uint64_t)>& while_pending = {}) {
        const uint64_t id = submit(std::move(operation));
        if (while_pending) while_pending(id);
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
    void on_completed() {  // on a wire thread that holds the communicator's lock, so another thread takes the
                           // completions
        std::lock_guard lock(news_mutex_);
        has_news_ = true;
        news_.notify_all();
    }
    void collect() {
        std::unique_lock lock_of_news(news_mutex_);
        for (;;) {
            news_.wait(lock_of_news, [this] { return has_news_ || ending_; });
            if (!has_news_) return;
            has_news_ = false;
            lock_of_news.unlock();
            auto some = communicator_.take();
            {
                std::lock_guard lock(mutex_);
                for (Completion& each : some) done_.emplace(each.id, std::move(each.failure));
                changed_.notify_all();
            }
            lock_of_news.lock();
        }
    }

    std::mutex news_mutex_, mutex_;
    std::condition_variable news_, changed_;
    bool has_news_ = false, ending_ = false;
    uint64_t last_ = 0;
    std::map<uint64_t, std::optional<Failure>> done_;
    WireCommunicator communicator_;
    std::thread collector_{[this] { collect(); }};

public:
    ~Rank() {
        communicator_.stop();
        {
            std::lock_guard lock(news_mutex_);
            ending_ = true;
            news_.notify_all();
        }
        collector_.join();
    }
};

// `apart`: every rank has an address of its own, as on another machine.
std::vector<std::unique_ptr<Engine>> engines_of(bool tcp, bool apart, int n) {
    if (!tcp) return make_loopback(n);
    std::vector<std::unique_ptr<RendezvousEngine>> all;
    for (int rank = 0; rank < n; rank++)
        all.push_back(make_tcp(rank, n, "127.0.0." + std::to_string(apart ? rank + 1 : 1), std::chrono::seconds(20),
                               std::chrono::seconds(10)));
    std::vector<std::unique_ptr<Engine>> engines;
    for (int rank = 0; rank < n; rank++) {
        std::vector<std::string> addresses;
        for (int peer = 0; peer < n; peer++)
            addresses.push_back(peer == rank ? std::string() : all[peer]->addresses()[rank]);
        all[rank]->set_peers(std::move(addresses));
    }
    for (auto& each : all) engines.push_back(std::move(each));
    return engines;
}

// What one rank does. All ranks call the same collectives, sends and receives, chosen by the seed, and then end in one
// of four ways.
void run_rank(Rank& self, int rank, int n, uint64_t seed, bool tcp) {
    Random random(seed), own(seed * 31 + rank);
    const auto require_success = [](const std::optional<Failure>& failure) {
        require(!failure, failure ? failure->what() : "");
    };
    Operation connect;
    connect.kind = Kind::connect;
    require_success(self.operate(std::move(connect)));

    const size_t lengths[] = {0, 1, 1000, 3000, 8'000, 20'000, 70'000, 600'000};
    for (uint64_t k = 2 + below(random, 3); k > 0; k--) {
        std::vector<float> x(lengths[below(random, 8)], 1.f + rank), y(lengths[below(random, 8)], 2.f), z(x.size());
        const int root = static_cast<int>(below(random, n)), next = (rank + 1) % n, before = (rank + n - 1) % n;
        Operation sum, broadcast, exchange, send, receive;
        exchange.kind = Kind::all_to_all;
        std::vector<std::vector<float>> leaving(n), arriving(n);
        const uint64_t sizes = below(random, 1000);
        const auto length_of = [&](int from, int to) {
            return lengths[(sizes + 7 * from + 3 * to * (1 + sizes % 5)) % 8];
        };
        for (int peer = 0; peer < n; peer++) {
            leaving[peer].assign(length_of(rank, peer), static_cast<float>(100 * rank + peer));
            arriving[peer].resize(length_of(peer, rank));
            exchange.parts.push_back(view_of(leaving[peer]));
            exchange.incoming.push_back(view_of(arriving[peer]));
        }
        sum.kind = Kind::all_reduce;
        sum.parts = {view_of(x)};
        broadcast.kind = Kind::broadcast;
        broadcast.peer = root;
        broadcast.parts = {view_of(y)};
        if (rank == root) y.assign(y.size(), 5.f);
        std::vector<float> sent(x.size(), static_cast<float>(rank));
        send.kind = Kind::send;
        send.peer = next;
        send.parts = {view_of(sent)};
        receive.kind = Kind::recv;
        receive.peer = before;
        receive.parts = {view_of(z)};
        std::vector<uint64_t> ids = {self.submit(std::move(sum)), self.submit(std::move(exchange)),
                                     self.submit(std::move(broadcast)), self.submit(std::move(send)),
                                     self.submit(std::move(receive))};
        for (const uint64_t id : ids) require_success(self.wait(id));
        for (const float each : x) require(each == n * (n + 1) / 2, "a sum is wrong");
        for (const float each : y) require(each == 5.f, "a broadcast is wrong");
        for (const float each : z) require(each == before, "a message is wrong");
        for (int peer = 0; peer < n; peer++)
            for (const float each : arriving[peer])
                require(each == static_cast<float>(100 * peer + rank), "an all-to-all is wrong");
    }

    // A receive that no rank sends to can be cancelled, from another thread.
    std::vector<float> never(10);
    Operation idle;
    idle.kind = Kind::recv;
    idle.peer = (rank + 1) % n;
    idle.parts = {view_of(never)};
    const auto cancelled = self.operate(std::move(idle), [&](uint64_t id) {
        require(self.communicator().cancel(id) == CancelOutcome::cancelled, "an idle receive cannot be cancelled");
    });
    require(cancelled && cancelled->reason == Reason::cancelled,
            "a cancelled receive did not fail with Reason::cancelled");

    // No rank may leave before this barrier: the others would see a broken connection.
    Operation meet;
    meet.kind = Kind::barrier;
    require_success(self.operate(std::move(meet)));
    const uint64_t ending = below(random, 4);
    if (ending == 0) return self.close();
    std::vector<float> x(2'000'000, 1.f), z(1'000'000);
    Operation sum, receive;
    sum.kind = Kind::all_reduce;
    sum.parts = {view_of(x)};
    receive.kind = Kind::recv;
    receive.peer = (rank + 1) % n;
    receive.parts = {view_of(z)};
    const std::vector<uint64_t> ids = {self.submit(std::move(sum)), self.submit(std::move(receive))};
    const auto pause = std::chrono::microseconds(below(own, 3000));
    // Over loopback only a rank's own abort ends its waits, so there every rank ends.
    const bool ends = static_cast<int>(below(random, n)) == rank || !tcp;
    const auto hear_of_it = [&] {  // as the rendezvous would tell this rank
        self.wait(ids[0]);
        self.communicator().abort("it is over");
        self.wait(ids[1]);
    };
    if (ending == 1) {  // one rank aborts, and the others see its connections break
        std::thread other([&] {
            std::this_thread::sleep_for(pause);
            if (ends) self.communicator().abort("enough");
        });
        hear_of_it();
        other.join();
        return self.close();
    }
    if (ending == 2) {  // all stop with operations running
        std::this_thread::sleep_for(pause);
        return self.communicator().stop();
    }
    std::this_thread::sleep_for(pause);  // one rank stops without a word
    if (ends) return self.communicator().stop();
    hear_of_it();
    self.close();
}

// Says of some pairs of ranks that a switch is between them, and of some peers that they are far away.
class Placed final : public Wrapper {
public:
    Placed(std::unique_ptr<Engine> engine, uint64_t seed) : Wrapper(std::move(engine)), seed_(seed) {}

    bool is_behind_switch(int peer) const override { return drawn(std::min(rank, peer), std::max(rank, peer), 0); }
    bool is_far(int peer) const override { return drawn(rank, peer, 1); }

private:
    bool drawn(int one, int other, int what) const {
        Random random(seed_ * 64 + static_cast<uint64_t>(one) * 16 + static_cast<uint64_t>(other) * 2 +
                      static_cast<uint64_t>(what));
        return below(random, 2) > 0;
    }

    const uint64_t seed_;
};

}  // namespace

void check_world(uint64_t seed) {
    Random random(seed);
    const int n = 2 + static_cast<int>(below(random, 4));
    const bool tcp = below(random, 3) > 0, apart = below(random, 2) > 0;
    std::vector<std::unique_ptr<Rank>> ranks;
    const bool paced = below(random, 3) == 0, placed = below(random, 2) > 0;
    const double latency = below(random, 2) ? 1e-4 : 6e-3;
    for (auto& engine : engines_of(tcp, apart, n)) {
        if (placed) engine = std::make_unique<Placed>(std::move(engine), seed);
        if (paced) engine = make_paced(std::move(engine), std::make_shared<Link>(1e9, latency));
        ranks.push_back(std::make_unique<Rank>(std::move(engine)));
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < n; rank++)
        threads.emplace_back([&, rank] { run_rank(*ranks[rank], rank, n, seed, tcp); });
    for (std::thread& each : threads) each.join();
}

}  // namespace terse::collectives::check
