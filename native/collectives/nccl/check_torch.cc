// libtorch and this engine in one process: its streams fill the memory, its caching allocator hands it out again.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdio>

#include "check.h"

namespace terse::nccl::check {
namespace {

BufferView buffer_of(const at::Tensor& x) { return {x.data_ptr(), static_cast<size_t>(x.numel()), DType::f32, false}; }

// Alone, an all-to-all is a copy on this engine's stream: what it finds there is what came before it on libtorch's.
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
        // On any stream: the promise came after the work.
        const c10::cuda::CUDAStreamGuard other(c10::cuda::getStreamFromPool());
        require(to.eq(10 * round).all().item<bool>(), "what libtorch's stream filled has not arrived");
    }  // their memory goes back to the allocator, and is handed out again in the next round
}

int run() {
    if (c10::cuda::device_count() == 0) return std::printf("skipped libtorch: it sees no GPU\n"), 0;
    const auto issuer = issuer_of(0);
    Group group(issuer, 0, 1, unique_id(issuer->nccl));
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

int main() {
    try {
        return terse::nccl::check::run();
    } catch (const std::exception& error) {
        std::printf("FAILED libtorch: %s\n", error.what());
        return 1;
    }
}
