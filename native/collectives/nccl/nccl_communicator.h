// A rank's place in a group whose collectives are NCCL's. See issuer.h for the thread, plan.h for which calls are made.
#pragma once
#include "../communicator.h"
#include "member.h"

namespace terse::nccl {

class NcclCommunicator : public collectives::Communicator {
public:
    NcclCommunicator(std::shared_ptr<Issuer> issuer, int rank, int size, UniqueId id, std::unique_ptr<Configuration> configuration, Clock::duration timeout, Clock::duration connect_timeout,
                     std::function<void()> completed);
    ~NcclCommunicator() override;

    const char* refusal(const collectives::Operation& operation) const override;
    // Sends and receives wait for `flush`, or for the next collective.
    void submit(collectives::Operation operation) override;
    void flush();

    // Takes this place in the order of the operations for a split, which completes as `id`. What is to happen there follows: every
    // rank of this group joins with the group that it will be in, or with no_color, and `child` stands for its place there.
    std::shared_ptr<Split> split(uint64_t id);
    void join(const std::shared_ptr<Split>& split, int color, int key, const NcclCommunicator* child);
    const std::shared_ptr<Issuer>& issuer() const { return issuer_; }
    void abort(const std::string& why) override;
    collectives::Cancelled cancel(uint64_t id) override;
    void close(uint64_t id) override;
    void stop() override;
    std::vector<collectives::Completion> take() override;
    const collectives::Counters& sent() const override { return member_->counters; }

private:
    const std::shared_ptr<Issuer> issuer_;
    const std::shared_ptr<Member> member_;
};

}  // namespace terse::nccl
