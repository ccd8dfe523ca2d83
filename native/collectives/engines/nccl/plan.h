// The NCCL calls that make one operation.
//
// All ranks must make the same calls, or they wait for ever. So the choice depends only on what is equal on every rank,
// such as the lengths of the parts. Whether parts are contiguous in memory may differ between ranks; parts that are not
// are copied to scratch.
#pragma once
#include "engines/nccl/nccl_comm.h"

namespace terse::nccl {

class Plan {
public:
    Plan(NcclComm& comm, Work& work) : comm_(comm), work_(work) {}
    void make();

private:
    struct Span {
        CUdeviceptr memory;
        size_t length;
        size_t bytes;
    };
    void operation(const collectives::Operation& operation);
    void copy_between_devices(const collectives::Operation& operation);
    void all_reduce(const collectives::Operation& operation);
    void reduce_scatter(const collectives::Operation& operation);
    void all_gather();
    void all_to_all(const collectives::Operation& operation);
    void notes(uint8_t note);
    std::vector<Span> stage(const std::vector<BufferView>& list, bool in, bool out, bool on_host);
    CUdeviceptr make_contiguous(const std::vector<Span>& spans, bool in);
    void unpack(CUdeviceptr memory, const std::vector<Span>& spans, size_t skip);
    void add_step(std::function<void()> what);  // CUDA work on the stream
    void add_group(std::vector<Step> calls);    // NCCL calls between ncclGroupStart and ncclGroupEnd
    // A call of NCCL, and one of the driver as a step. `function` takes the arguments, then the communicator (NCCL's)
    // and the stream.
    template <typename... Parameters, typename... Arguments>
    Step nccl(Result (*Library::*function)(Parameters...), Arguments... arguments) const;
    template <typename... Parameters, typename... Arguments>
    void add_cuda(const char* name, CUresult (*Driver::*function)(Parameters...), Arguments... arguments);
    Step broadcast(const Span& span, int root) const;
    void send(const Span& span, int to);
    void recv(const Span& span, int from);
    void copy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
    void copy_in(CUdeviceptr to, const void* from, size_t bytes);

    NcclComm& comm_;
    Work& work_;
    std::vector<Step> point_to_point_;  // sends and receives; they go into one group
    std::vector<Span> parts_, incoming_;
};

}  // namespace terse::nccl
