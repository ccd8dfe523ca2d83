#include <napi.h>

#include <algorithm>

#include "binding/arguments.h"
#include "binding/communicator_object.h"
#include "binding/functions.h"
#include "engines/nccl/nccl_communicator.h"

namespace terse::collectives::binding {
namespace {

using DeviceExternal = Napi::External<std::shared_ptr<nccl::Device>>;

const std::shared_ptr<nccl::Device>& device_of(const Napi::Value& value) { return *value.As<DeviceExternal>().Data(); }

// ncclStatus(library, driver) → what was found; never throws
Napi::Value nccl_status(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const auto library = nccl::open_library(text_or_empty(info[0]));
    const auto driver = nccl::open_driver(text_or_empty(info[1]));
    auto status = Napi::Object::New(env);
    status.Set("available", library.library && driver.library);
    status.Set("reason",
               library.reason + (library.reason.empty() || driver.reason.empty() ? "" : "; ") + driver.reason);
    if (library.library) {
        status.Set("version", nccl::version_text(library.library->version));
        status.Set("path", library.library->path);
        auto absent = Napi::Array::New(env);
        for (const std::string& symbol : library.library->absent) absent.Set(absent.Length(), symbol);
        status.Set("absent", absent);
    }
    status.Set("devices", driver.library ? driver.library->devices : 0);
    return status;
}

const nccl::Library& opened_library(Napi::Env env, const Napi::Value& path) {
    const auto library = nccl::open_library(text_or_empty(path));
    if (!library.library) throw Napi::Error::New(env, library.reason);
    return *library.library;
}

// ncclDevice(ordinal, library, driver) → the device, which all communicators of a rank share
Napi::Value nccl_device(const Napi::CallbackInfo& info) {
    const auto& library = opened_library(info.Env(), info[1]);
    const auto driver = nccl::open_driver(text_or_empty(info[2]));
    if (!driver.library) throw Napi::Error::New(info.Env(), driver.reason);
    auto device = std::make_unique<std::shared_ptr<nccl::Device>>(
        std::make_shared<nccl::Device>(library, *driver.library, info[0].ToNumber().Int32Value()));
    return DeviceExternal::New(info.Env(), device.release(),
                               [](Napi::Env, std::shared_ptr<nccl::Device>* device) { delete device; });
}

// ncclUniqueId(library) → 128 bytes, for one group
Napi::Value nccl_unique_id(const Napi::CallbackInfo& info) {
    const auto& library = opened_library(info.Env(), info[0]);
    nccl::UniqueId id;
    const nccl::Result result = library.GetUniqueId(&id);
    if (result != nccl::success)
        throw Napi::Error::New(info.Env(), std::string("ncclGetUniqueId: ") + library.GetErrorString(result) + " (" +
                                               library.GetLastError(nullptr) + ")");
    return Napi::Buffer<char>::Copy(info.Env(), id.internal, sizeof id.internal);
}

// ncclAllocate(device, bytes) → address
Napi::Value nccl_allocate(const Napi::CallbackInfo& info) {
    void* memory = device_of(info[0])->allocate_buffer(static_cast<size_t>(info[1].ToNumber().Int64Value()));
    return Napi::BigInt::New(info.Env(), static_cast<uint64_t>(reinterpret_cast<uintptr_t>(memory)));
}

// ncclFree(device, address)
Napi::Value nccl_free(const Napi::CallbackInfo& info) {
    bool lossless;
    const auto address = static_cast<uintptr_t>(info[1].As<Napi::BigInt>().Uint64Value(&lossless));
    device_of(info[0])->free_buffer(reinterpret_cast<void*>(address));
    return info.Env().Undefined();
}

Napi::Object make_communicator(Napi::Env env, const std::shared_ptr<nccl::Device>& device, int rank, int size,
                               const nccl::UniqueId& id, const Napi::Value& config, const Napi::Value& timeout_seconds,
                               const Napi::Value& connect_seconds) {
    auto configuration = std::make_shared<std::unique_ptr<nccl::Configuration>>(
        std::make_unique<nccl::Configuration>(device->nccl.version));
    const auto fields = config.As<Napi::Object>();
    const auto names = fields.GetPropertyNames();
    for (uint32_t i = 0; i < names.Length(); i++) {
        const std::string name = names.Get(i).ToString();
        const Napi::Value value = fields.Get(name);
        const std::string error = (*configuration)
                                      ->set(name, value.IsString()
                                                      ? std::variant<int, std::string>(text_or_empty(value))
                                                      : value.ToNumber().Int32Value());
        if (!error.empty()) throw Napi::TypeError::New(env, error);
    }
    const auto timeout = seconds(timeout_seconds), connect_timeout = seconds(connect_seconds);
    const auto make = [=](std::function<void()> completed) {
        return std::make_shared<nccl::NcclCommunicator>(device, rank, size, id, std::move(*configuration), timeout,
                                                        connect_timeout, std::move(completed));
    };
    return CommunicatorObject::make(env, {make, false});
}

// nccl(device, rank, size, uniqueId, config, timeoutSeconds, connectSeconds) → communicator; its connect() joins the
// other ranks
Napi::Value make_nccl(const Napi::CallbackInfo& info) {
    const auto bytes = info[3].As<Napi::Uint8Array>();
    nccl::UniqueId id;
    if (bytes.ByteLength() != sizeof id.internal) throw Napi::RangeError::New(info.Env(), "a unique id has 128 bytes");
    std::copy_n(reinterpret_cast<const char*>(bytes.Data()), sizeof id.internal, id.internal);
    return make_communicator(info.Env(), device_of(info[0]), info[1].ToNumber(), info[2].ToNumber(), id, info[4],
                             info[5], info[6]);
}

// ncclSplit(pending split, color, key, rank, size, config, timeoutSeconds, connectSeconds) → communicator, usable when
// the split has ended; undefined for color −1
Napi::Value nccl_split(const Napi::CallbackInfo& info) {
    const PendingSplit& pending = *info[0].As<Napi::External<PendingSplit>>().Data();
    const int color = info[1].ToNumber(), key = info[2].ToNumber();
    if (color == nccl::no_color) {
        pending.group->join(pending.split, color, key, nullptr);
        return info.Env().Undefined();
    }
    const Napi::Object object = make_communicator(info.Env(), pending.group->device(), info[3].ToNumber(),
                                                  info[4].ToNumber(), {}, info[5], info[6], info[7]);
    pending.group->join(pending.split, color, key, CommunicatorObject::Unwrap(object)->nccl().get());
    return object;
}

}  // namespace

void add_nccl(Napi::Env env, Napi::Object exports) {
    exports.Set("ncclStatus", Napi::Function::New(env, nccl_status, "ncclStatus"));
    exports.Set("ncclDevice", Napi::Function::New(env, nccl_device, "ncclDevice"));
    exports.Set("ncclUniqueId", Napi::Function::New(env, nccl_unique_id, "ncclUniqueId"));
    exports.Set("ncclAllocate", Napi::Function::New(env, nccl_allocate, "ncclAllocate"));
    exports.Set("ncclFree", Napi::Function::New(env, nccl_free, "ncclFree"));
    exports.Set("nccl", Napi::Function::New(env, make_nccl, "nccl"));
    exports.Set("ncclSplit", Napi::Function::New(env, nccl_split, "ncclSplit"));
}

}  // namespace terse::collectives::binding
