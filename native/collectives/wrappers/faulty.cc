#include "wrappers/faulty.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "wrappers/wrapper.h"

namespace terse::collectives {
namespace {

class Faulty final : public Wrapper {
public:
    Faulty(std::unique_ptr<Engine> engine, std::vector<Fault> faults)
        : Wrapper(std::move(engine)), faults_(std::move(faults)) {}

    std::unique_ptr<Transfer> send(int peer, uint32_t slot, const void* data, size_t bytes) override {
        const uint32_t number = is_point_to_point(slot) ? 0 : collective_;
        const bool lost = std::ranges::any_of(faults_, [&](const Fault& fault) {
            return fault.kind == Fault::Kind::loss && (fault.at == 0 || fault.at == number) &&
                   (fault.to < 0 || fault.to == peer);
        });
        if (lost) return std::make_unique<LostTransfer>();
        return engine_->send(peer, slot, data, bytes);
    }

    void abort() noexcept override {
        {
            std::lock_guard lock(mutex_);
            aborted_ = true;
            changed_.notify_all();
        }
        engine_->abort();
    }

    void before(uint32_t collective) override {
        engine_->before(collective);
        if (collective) collective_ = collective;
        for (const Fault& fault : faults_) {
            if (fault.at != 0 && fault.at != collective) continue;
            if (fault.kind == Fault::Kind::delay) {
                std::unique_lock lock(mutex_);
                changed_.wait_for(lock, std::chrono::duration<double, std::milli>(fault.delay_ms),
                                  [&] { return aborted_; });
            }
            if (fault.kind == Fault::Kind::death) throw Failure(Reason::lost, rank, "fault injection ended this rank");
        }
    }

private:
    struct LostTransfer final : Transfer {
        void wait(Clock::time_point) override {}
    };

    const std::vector<Fault> faults_;
    uint32_t collective_ = 0;  // the running one; only the wire thread uses it
    std::mutex mutex_;
    std::condition_variable changed_;
    bool aborted_ = false;
};

}  // namespace

std::unique_ptr<Engine> make_faulty(std::unique_ptr<Engine> engine, std::vector<Fault> faults) {
    return std::make_unique<Faulty>(std::move(engine), std::move(faults));
}

}  // namespace terse::collectives
