// The codecs of a GPU, from a library that is there only where it was built.
#include <dlfcn.h>

#include <type_traits>

#include "arguments.h"
#include "tables.h"

#include "terse/codecs_cuda.h"

namespace terse::codecs_binding {

namespace {

// The functions of libterse_codecs_cuda.so that have their wires in host memory. The library is opened once, and stays.
struct CudaLibrary {
    decltype(&terse_codecs_cuda_error) error;
    decltype(&terse_codec_cuda_at) codec_at;
    decltype(&terse_codec_cuda_encode_to_host) encode;
    decltype(&terse_codec_cuda_decode_from_host) decode;
    decltype(&terse_codec_cuda_scales_to_host) scales;
    decltype(&terse_cuda_float_at) float_at;
};

CudaLibrary cuda;

const terse_codec_cuda& cuda_codec_of(const Napi::CallbackInfo& info) {
    return *static_cast<const terse_codec_cuda*>(info.Data());
}

void throw_unless_on_device(Napi::Env env, terse_codec_status status) {
    if (status == TERSE_CODEC_UNAVAILABLE) throw Napi::Error::New(env, std::string("CUDA: ") + cuda.error());
    throw_unless_ok(env, status);
}

Napi::Value accepted_on_device(Napi::Env env, terse_codec_status status, size_t n, size_t bad) {
    if (status != TERSE_CODEC_NOT_FINITE) throw_unless_on_device(env, status);
    return Napi::Number::New(env, static_cast<double>(status == TERSE_CODEC_OK ? n : bad));
}

Napi::Value cuda_encode(const Napi::CallbackInfo& info) {
    const terse_codec_cuda& codec = cuda_codec_of(info);
    size_t n;
    int device;
    const float* x = terse::device_floats_of(info[1], "x", n, device);
    WireCall call(info, *codec.definition, n, 0, 2);
    const terse_codec_status status = cuda.encode(&codec, device, call.wire, call.bytes, x, nullptr, n, &call.options.c,
                                                  &call.bad);
    return accepted_on_device(info.Env(), status, n, call.bad);
}

Napi::Value cuda_encode_with_feedback(const Napi::CallbackInfo& info) {
    const terse_codec_cuda& codec = cuda_codec_of(info);
    size_t n, length;
    int device, other;
    const float* x = terse::device_floats_of(info[1], "x", n, device);
    float* error = terse::device_floats_of(info[2], "error", length, other);
    if (length != n)
        throw Napi::RangeError::New(info.Env(),
                                    "error: expected " + std::to_string(n) + " floats, got " + std::to_string(length));
    if (other != device)
        throw Napi::TypeError::New(info.Env(), "error: is on cuda:" + std::to_string(other) +
                                                   ", and x on cuda:" + std::to_string(device) +
                                                   "; move all arrays of the call to one device");
    WireCall call(info, *codec.definition, n, 0, 3);
    const terse_codec_status status = cuda.encode(&codec, device, call.wire, call.bytes, x, error, n, &call.options.c,
                                                  &call.bad);
    return accepted_on_device(info.Env(), status, n, call.bad);
}

template <int adds>
Napi::Value cuda_decode(const Napi::CallbackInfo& info) {
    const terse_codec_cuda& codec = cuda_codec_of(info);
    size_t n;
    int device;
    float* to = terse::device_floats_of(info[0], "sum", n, device);
    const WireCall call(info, *codec.definition, n, 1, 2);
    const terse_codec_status status = cuda.decode(&codec, device, to, n, call.wire, call.bytes, &call.options.c, adds);
    if (status != TERSE_CODEC_BAD_WIRE) throw_unless_on_device(info.Env(), status);
    return Napi::Boolean::New(info.Env(), status == TERSE_CODEC_OK);
}

Napi::Value cuda_scales(const Napi::CallbackInfo& info) {
    size_t n, count, bad = 0;
    int device;
    float* scales = floats_of(info[0], "scales", count);
    const float* x = terse::device_floats_of(info[1], "x", n, device);
    const Options options(options_of(info, 2));
    const terse_codec_status status = cuda.scales(&cuda_codec_of(info), device, scales, count, x, n, &options.c, &bad);
    return accepted_on_device(info.Env(), status, n, bad);
}

Napi::Value cuda_wire_bytes(const Napi::CallbackInfo& info) {
    const Options options(options_of(info, 1));
    return Napi::Number::New(info.Env(), static_cast<double>(wire_bytes_of(info.Env(), *cuda_codec_of(info).definition,
                                                                           count_of(info[0], "n"), options)));
}

}  // namespace

Napi::Value open_cuda(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const std::string path = info[0].IsString() ? info[0].As<Napi::String>().Utf8Value() : "";
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw Napi::Error::New(env, dlerror());
    const auto abi = reinterpret_cast<decltype(&terse_codecs_cuda_abi)>(dlsym(library, "terse_codecs_cuda_abi"));
    if (!abi || abi() != TERSE_CODECS_CUDA_ABI)
        throw Napi::Error::New(env, path + " was built from another version of terse; build it again");
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    find(cuda.error, "terse_codecs_cuda_error");
    find(cuda.codec_at, "terse_codec_cuda_at");
    find(cuda.encode, "terse_codec_cuda_encode_to_host");
    find(cuda.decode, "terse_codec_cuda_decode_from_host");
    find(cuda.scales, "terse_codec_cuda_scales_to_host");
    find(cuda.float_at, "terse_cuda_float_at");
    Napi::Array list = Napi::Array::New(env);
    const terse_codec_cuda* codec;
    for (uint32_t i = 0; (codec = cuda.codec_at(i)); i++) {
        Napi::Object object = Napi::Object::New(env);
        object["name"] = codec->definition->name;
        object["implementation"] = "cuda";
        add_method<cuda_wire_bytes>(object, "wireBytes", codec);
        add_method<cuda_encode>(object, "encode", codec);
        add_method<cuda_encode_with_feedback>(object, "encodeWithFeedback", codec);
        add_method<cuda_decode<true>>(object, "decodeAdd", codec);
        add_method<cuda_decode<false>>(object, "decode", codec);
        if (codec->definition->scales) add_method<cuda_scales>(object, "scales", codec);
        list[i] = object;
    }
    return list;
}

Napi::Value float_at(const Napi::CallbackInfo& info) {
    const BufferView memory = terse::buffer_of(info[0], "x");
    const bool on_device = memory.cuda >= 0 && cuda.float_at;
    size_t n = memory.length;
    const float* x = on_device ? static_cast<const float*>(memory.data) : floats_of(info[0], "x", n);
    const size_t i = count_of(info[1], "i");
    if (i >= n)
        throw Napi::RangeError::New(info.Env(),
                                    "i: expected less than " + std::to_string(n) + ", got " + std::to_string(i));
    float value = 0;
    if (on_device) throw_unless_on_device(info.Env(), cuda.float_at(memory.cuda, x + i, &value));
    else value = x[i];
    return Napi::Number::New(info.Env(), value);
}

}  // namespace terse::codecs_binding
