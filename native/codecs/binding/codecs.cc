// The codecs of the CPU.
#include "arguments.h"
#include "tables.h"

namespace terse::codecs_binding {

namespace {

const terse_codec& codec_of(const Napi::CallbackInfo& info) { return *static_cast<const terse_codec*>(info.Data()); }

Napi::Value wire_bytes(const Napi::CallbackInfo& info) {
    const Options options(options_of(info, 1));
    return Napi::Number::New(
        info.Env(), static_cast<double>(wire_bytes_of(info.Env(), codec_of(info), count_of(info[0], "n"), options)));
}

// The index of the element that was refused, n where none was.
Napi::Value accepted(Napi::Env env, terse_codec_status status, size_t n, size_t bad) {
    if (status != TERSE_CODEC_NOT_FINITE && status != TERSE_CODEC_DOES_NOT_FIT) throw_unless_ok(env, status);
    return Napi::Number::New(env, static_cast<double>(status == TERSE_CODEC_OK ? n : bad));
}

Napi::Value encode(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n, bad = 0;
    const float* x = floats_of(info[1], "x", n);
    const Options options(options_of(info, 2), options_of(info, 3), n);
    const size_t bytes = wire_bytes_of(info.Env(), codec, n, options);
    uint8_t* wire = bytes_of(info[0], "wire", bytes);
    const terse_codec_status status = terse_codec_encode(&codec, wire, bytes, x, n, &options.c, &bad);
    return accepted(info.Env(), status, n, bad);
}

Napi::Value encode_with_feedback(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n, bad = 0;
    const float* x = floats_of(info[1], "x", n);
    float* error = so_many_floats_of(info[2], "error", n);
    const Options options(options_of(info, 3), options_of(info, 4), n);
    const size_t bytes = wire_bytes_of(info.Env(), codec, n, options);
    uint8_t* wire = bytes_of(info[0], "wire", bytes);
    const terse_codec_status status = terse_codec_encode_with_feedback(&codec, wire, bytes, x, error, n, &options.c,
                                                                       &bad);
    return accepted(info.Env(), status, n, bad);
}

Napi::Value encode_sum_with_feedback(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n, bad = 0;
    float* error = floats_of(info[2], "error", n);
    const Options options(options_of(info, 3), options_of(info, 4), n);
    const size_t bytes = wire_bytes_of(info.Env(), codec, n, options);
    uint8_t* wire = bytes_of(info[0], "wire", bytes);
    const Wires wires(info[1], "wires", bytes);
    const terse_codec_status status = terse_codec_encode_sum_with_feedback(
        &codec, wire, bytes, wires.pointers.data(), wires.pointers.size(), error, n, &options.c, &bad);
    return status == TERSE_CODEC_BAD_WIRE ? Napi::Number::New(info.Env(), -1) : accepted(info.Env(), status, n, bad);
}

Napi::Value encode_momentum(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n, bad = 0;
    float* error = floats_of(info[3], "error", n);
    const float *m = so_many_floats_of(info[1], "m", n), *g = so_many_floats_of(info[2], "g", n);
    const Napi::Object call = options_of(info, 5);
    const Options options(options_of(info, 4), call, n);
    const terse_momentum weights = {float_of(call, "keep"), float_of(call, "add"), float_of(call, "sent")};
    const size_t bytes = wire_bytes_of(info.Env(), codec, n, options);
    uint8_t* wire = bytes_of(info[0], "wire", bytes);
    const terse_codec_status status = terse_codec_encode_momentum(&codec, wire, bytes, m, g, error, n, &weights,
                                                                  &options.c, &bad);
    return accepted(info.Env(), status, n, bad);
}

Napi::Value encode_sum(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n, bad = 0;
    float* error = floats_of(info[2], "error", n);
    const Napi::Object call = options_of(info, 4);
    const Options options(options_of(info, 3), call, n);
    const size_t bytes = wire_bytes_of(info.Env(), codec, n, options);
    uint8_t* wire = bytes_of(info[0], "wire", bytes);
    const Wires wires(info[1], "wires", bytes);
    const terse_codec_status status = terse_codec_encode_sum(&codec, wire, bytes, wires.pointers.data(),
                                                             wires.pointers.size(), error, n, float_of(call, "sent"),
                                                             &options.c, &bad);
    return status == TERSE_CODEC_BAD_WIRE ? Napi::Number::New(info.Env(), -1) : accepted(info.Env(), status, n, bad);
}

template <auto call>
Napi::Value decode_by(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n;
    float* to = floats_of(info[0], "sum", n);
    const Options options(options_of(info, 2), options_of(info, 3), n);
    const size_t bytes = wire_bytes_of(info.Env(), codec, n, options);
    const uint8_t* wire = bytes_of(info[1], "wire", bytes);
    const terse_codec_status status = call(&codec, to, n, wire, bytes, &options.c);
    if (status != TERSE_CODEC_BAD_WIRE) throw_unless_ok(info.Env(), status);
    return Napi::Boolean::New(info.Env(), status == TERSE_CODEC_OK);
}

Napi::Value scales_of(const Napi::CallbackInfo& info) {
    size_t n, count, bad = 0;
    float* scales = floats_of(info[0], "scales", count);
    const float* x = floats_of(info[1], "x", n);
    const Options options(options_of(info, 2));
    const terse_codec_status status = terse_codec_scales(&codec_of(info), scales, count, x, n, &options.c, &bad);
    return accepted(info.Env(), status, n, bad);
}

}  // namespace

Napi::Value codecs(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    Napi::Array list = Napi::Array::New(env);
    const terse_codec* codec;
    for (uint32_t i = 0; (codec = terse_codec_at(i)); i++) {
        Napi::Object object = Napi::Object::New(env);
        object["name"] = codec->name;
        object["implementation"] = codec->implementation;
        object["wireBytes"] = Napi::Function::New<wire_bytes>(env, "wireBytes", data_of(codec));
        object["encode"] = Napi::Function::New<encode>(env, "encode", data_of(codec));
        object["encodeWithFeedback"] = Napi::Function::New<encode_with_feedback>(env, "encodeWithFeedback",
                                                                                 data_of(codec));
        object["encodeSumWithFeedback"] = Napi::Function::New<encode_sum_with_feedback>(env, "encodeSumWithFeedback",
                                                                                        data_of(codec));
        object["decodeAdd"] = Napi::Function::New<decode_by<terse_codec_decode_add>>(env, "decodeAdd", data_of(codec));
        object["decode"] = Napi::Function::New<decode_by<terse_codec_decode>>(env, "decode", data_of(codec));
        if (codec->encode_momentum) {
            object["encodeMomentum"] = Napi::Function::New<encode_momentum>(env, "encodeMomentum", data_of(codec));
            object["encodeSum"] = Napi::Function::New<encode_sum>(env, "encodeSum", data_of(codec));
        }
        if (codec->scales) object["scales"] = Napi::Function::New<scales_of>(env, "scales", data_of(codec));
        list[i] = object;
    }
    return list;
}

}  // namespace terse::codecs_binding
