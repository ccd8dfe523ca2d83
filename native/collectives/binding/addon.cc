#include "binding/communicator_object.h"
#include "binding/functions.h"

namespace terse::collectives::binding {
namespace {

Napi::Object init(Napi::Env env, Napi::Object exports) {
    CommunicatorObject::define(env);
    for (const auto add : {add_buffers, add_end_with_parent, add_engines, add_heartbeat, add_mpi, add_nccl})
        add(env, exports);
    return exports;
}

NODE_API_MODULE(collectives, init)

}  // namespace
}  // namespace terse::collectives::binding
