#include "binding/device_copy.h"

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "engines/nccl/library.h"

namespace terse::collectives::binding {
namespace {

using namespace nccl;

const Driver& opened_driver() {
    const auto opened = open_driver("");
    if (!opened.library) throw std::runtime_error("copy: the memory is on a GPU, and " + opened.reason);
    return *opened.library;
}

void check(const Driver& cuda, CUresult result, const char* what) {
    if (result != cuda_success) throw std::runtime_error(std::string("copy: ") + what + ": " + name_of(cuda, result));
}

// libtorch uses the primary context too. It is retained once and never released.
CUcontext primary_context(const Driver& cuda, int ordinal) {
    static std::mutex mutex;
    static auto* contexts = new std::map<std::pair<const Driver*, int>, CUcontext>;
    std::lock_guard lock(mutex);
    if (const auto known = contexts->find({&cuda, ordinal}); known != contexts->end()) return known->second;
    CUdevice device;
    CUcontext context;
    check(cuda, cuda.device_get(&device, ordinal), ("cuDeviceGet of cuda:" + std::to_string(ordinal)).c_str());
    check(cuda, cuda.context_retain(&context, device), "cuDevicePrimaryCtxRetain");
    return contexts->emplace(std::pair(&cuda, ordinal), context).first->second;
}

}  // namespace

void device_copy(const BufferView& into, const BufferView& from) {
    for (const BufferView* view : {&into, &from})
        if (!view->on_cpu && view->cuda < 0)
            throw std::runtime_error("copy: memory is on cpu or cuda, and this is on another device");
    if (!into.on_cpu && !from.on_cpu && into.cuda != from.cuda)
        throw std::runtime_error("copy: into is on cuda:" + std::to_string(into.cuda) +
                                 " and from on cuda:" + std::to_string(from.cuda) + "; copy through the CPU");
    if (into.bytes() == 0) return;
    const Driver& cuda = opened_driver();
    check(cuda, cuda.context_push(primary_context(cuda, into.on_cpu ? from.cuda : into.cuda)), "cuCtxPushCurrent");
    struct Pop {
        const Driver& cuda;
        ~Pop() {
            CUcontext popped;
            cuda.context_pop(&popped);
        }
    } pop{cuda};
    const auto to = reinterpret_cast<CUdeviceptr>(into.data), source = reinterpret_cast<CUdeviceptr>(from.data);
    constexpr CUstream standard = nullptr;
    if (into.on_cpu) check(cuda, cuda.copy_out(into.data, source, into.bytes(), standard), "cuMemcpyDtoHAsync");
    else if (from.on_cpu) check(cuda, cuda.copy_in(to, from.data, into.bytes(), standard), "cuMemcpyHtoDAsync");
    else check(cuda, cuda.copy(to, source, into.bytes(), standard), "cuMemcpyDtoDAsync");
    check(cuda, cuda.stream_synchronize(standard), "cuStreamSynchronize");
}

}  // namespace terse::collectives::binding
