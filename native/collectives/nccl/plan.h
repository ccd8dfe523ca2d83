// Which calls of NCCL make an operation.
//
// What every rank can see alike decides it: lengths that all ranks give. Whether parts lie side by side does not, because that may
// differ from rank to rank, and ranks that make different calls wait for ever; parts that do not are copied on the device.
#pragma once
#include "member.h"

namespace terse::nccl {

class Plan {
public:
    Plan(Member& member, Flight& flight) : member_(member), flight_(flight) {}
    void make();

private:
    struct Span {
        CUdeviceptr memory;
        size_t length;
        size_t bytes;
    };
    void operation(const collectives::Operation& operation);
    void copy_across(const collectives::Operation& operation);
    void all_reduce(const collectives::Operation& operation);
    void reduce_scatter(const collectives::Operation& operation);
    void all_gather(const collectives::Operation& operation);
    void all_to_all(const collectives::Operation& operation);
    void notes(uint8_t note);
    std::vector<Span> bring(const std::vector<BufferView>& list, bool in, bool out, bool on_host);
    CUdeviceptr side_by_side(const std::vector<Span>& spans, bool in);
    void spread(CUdeviceptr memory, const std::vector<Span>& spans, size_t skip);
    void work(std::function<void()> what);                // on the stream
    void group(std::vector<Step> calls);                  // as one
    void copy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
    Type type_of(DType dtype) const;

    Member& member_;
    Flight& flight_;
    std::vector<Step> exchange_;  // sends and receives of this request
    std::vector<Span> parts_, incoming_;
};

}  // namespace terse::nccl
