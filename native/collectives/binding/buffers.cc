// Functions on buffers of this process.
#include <napi.h>

#include <cstring>
#include <vector>

#include "algorithms/reduce.h"
#include "binding/device_copy.h"
#include "binding/functions.h"
#include "terse/napi_buffer.h"

namespace terse::collectives::binding {
namespace {

// reduce(reduction, dtype, into, from): on bytes, as the wire threads reduce them
Napi::Value reduce(const Napi::CallbackInfo& info) {
    const uint32_t reduction = info[0].ToNumber(), dtype = info[1].ToNumber();
    const BufferView into = buffer_of(info[2], "into"), from = buffer_of(info[3], "from");
    if (reduction > static_cast<uint32_t>(Reduction::max) || dtype >= static_cast<uint32_t>(DType::boolean) ||
        into.bytes() != from.bytes())
        throw Napi::RangeError::New(info.Env(), "no such reduction");
    find_reduce(static_cast<Reduction>(reduction), static_cast<DType>(dtype))(
        into.data, from.data, into.bytes() / bytes_of(static_cast<DType>(dtype)));
    return info.Env().Undefined();
}

// copy(into, from): as many bytes, of the CPU or of a CUDA device
Napi::Value copy(const Napi::CallbackInfo& info) {
    const BufferView into = buffer_of(info[0], "into"), from = buffer_of(info[1], "from");
    if (into.bytes() != from.bytes())
        throw Napi::RangeError::New(info.Env(), "copy: into has " + std::to_string(into.bytes()) +
                                                    " bytes and from has " + std::to_string(from.bytes()));
    if (!into.on_cpu || !from.on_cpu) device_copy(into, from);
    else if (into.bytes()) std::memmove(into.data, from.data, into.bytes());
    return info.Env().Undefined();
}

// average(into, parts): f32 on the CPU, all as long as `into` → the first element that is not finite, or the length
Napi::Value average(const Napi::CallbackInfo& info) {
    const BufferView into = buffer_of(info[0], "into");
    const Napi::Array list = info[1].As<Napi::Array>();
    std::vector<const float*> parts;
    for (uint32_t r = 0; r < list.Length(); r++) {
        const BufferView part = buffer_of(list[r], "a part");
        if (part.dtype != DType::f32 || into.dtype != DType::f32 || !part.on_cpu || !into.on_cpu)
            throw Napi::TypeError::New(info.Env(), "average: all arrays must be f32 on the CPU");
        if (part.length != into.length)
            throw Napi::RangeError::New(info.Env(), "average: into has " + std::to_string(into.length) +
                                                        " elements and a part has " + std::to_string(part.length));
        parts.push_back(static_cast<const float*>(part.data));
    }
    if (parts.empty()) throw Napi::RangeError::New(info.Env(), "average: there are no parts");
    return Napi::Number::New(info.Env(), static_cast<double>(collectives::average(
                                             static_cast<float*>(into.data), parts.data(), parts.size(), into.length)));
}

// addressOf(typed array) → the address of its first element
Napi::Value address_of(const Napi::CallbackInfo& info) {
    return Napi::BigInt::New(info.Env(),
                             static_cast<uint64_t>(reinterpret_cast<uintptr_t>(buffer_of(info[0], "the array").data)));
}

}  // namespace

void add_buffers(Napi::Env env, Napi::Object exports) {
    exports.Set("reduce", Napi::Function::New(env, reduce, "reduce"));
    exports.Set("copy", Napi::Function::New(env, copy, "copy"));
    exports.Set("average", Napi::Function::New(env, average, "average"));
    exports.Set("addressOf", Napi::Function::New(env, address_of, "addressOf"));
}

}  // namespace terse::collectives::binding
