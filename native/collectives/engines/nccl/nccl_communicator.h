// A Communicator whose collectives are NCCL's: any thread's view of an NcclComm.
#pragma once
#include "communicator/communicator.h"
#include "engines/nccl/nccl_comm.h"

namespace terse::nccl {

class NcclCommunicator : public collectives::Communicator {
public:
    NcclCommunicator(std::shared_ptr<Device> device, int rank, int size, UniqueId id,
                     std::unique_ptr<Configuration> configuration, Clock::duration timeout,
                     Clock::duration connect_timeout, std::function<void()> completed);
    ~NcclCommunicator() override;

    const char* refusal(const collectives::Operation& operation) const override;
    // Sends and receives start at the next `flush` or collective, together.
    void submit(collectives::Operation operation) override;
    void flush();

    // Queues a split, which completes as `id`. It runs after every rank has called `join` with its color, or with
    // no_color; `child` is this rank's communicator in the new group.
    std::shared_ptr<Split> split(uint64_t id);
    void join(const std::shared_ptr<Split>& split, int color, int key, const NcclCommunicator* child);
    const std::shared_ptr<Device>& device() const { return device_; }
    void abort(const std::string& why) override;
    collectives::CancelOutcome cancel(uint64_t id) override;
    void close(uint64_t id) override;
    void stop() override;
    std::vector<collectives::Completion> take() override;
    const collectives::Counters& sent() const override { return comm_->counters; }

private:
    const std::shared_ptr<Device> device_;
    const std::shared_ptr<NcclComm> comm_;
};

}  // namespace terse::nccl
