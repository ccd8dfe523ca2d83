// libtorch and this engine in one process: libtorch's streams write the memory, and its caching allocator reuses it.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdio>
#include <cstdlib>

#include "checks/nccl/check.h"

namespace terse::nccl::check {
namespace {

BufferView buffer_of(const at::Tensor& x) { return {x.data_ptr(), static_cast<size_t>(x.numel()), DType::f32, false}; }

// With one rank an all-to-all is a copy on this engine's stream. It must see what libtorch's stream wrote before.
void copy(Group& group, const at::Tensor& from, const at::Tensor& to, c10::cuda::CUDAStream stream) {
    Operation operation = group.collective(Kind::all_to_all, {buffer_of(from)}, {buffer_of(to)});
    operation.stream = reinterpret_cast<uintptr_t>(stream.stream());
    group.run(operation);
}

void filled_by(Group& group, c10::cuda::CUDAStream stream) {
    const auto on_device = at::TensorOptions().device(at::kCUDA).dtype(at::kFloat);
    for (int round = 0; round < 20; round++) {
        const c10::cuda::CUDAStreamGuard guard(stream);
        const auto slow = at::randn({4096, 4096}, on_device);
        const auto from = at::zeros({(1 << 20) + round}, on_device), to = at::full_like(from, -1);
        for (int i = 0; i < 4; i++) at::mm(slow, slow);
        for (int i = 0; i < 10; i++) from.add_(round);
        copy(group, from, to, stream);
        // Any stream must see the result, because the operation has completed.
        const c10::cuda::CUDAStreamGuard other(c10::cuda::getStreamFromPool());
        require(to.eq(10 * round).all().item<bool>(), "the operation did not see what libtorch's stream wrote");
    }  // the allocator reuses their memory in the next round
}

int run() {
    if (c10::cuda::device_count() == 0) return std::printf("skipped libtorch: it sees no GPU\n"), 0;
    const auto device = device_of(0);
    Group group(device, 0, 1, unique_id(device->nccl));
    group.connect();
    filled_by(group, c10::cuda::getDefaultCUDAStream());
    std::printf("ok libtorch: its default stream\n");
    filled_by(group, c10::cuda::getStreamFromPool());
    std::printf("ok libtorch: a stream of its own\n");
    group.close();
    return 0;
}

}  // namespace
}  // namespace terse::nccl::check

// libtorch's destructors of static objects, which a Python process never runs, free a locale twice with Ubuntu's
// libstdc++: so none of them run here.
int main() {
    int status = 1;
    try {
        status = terse::nccl::check::run();
    } catch (const std::exception& error) {
        std::printf("FAILED libtorch: %s\n", error.what());
    }
    std::fflush(nullptr);
    std::_Exit(status);
}
