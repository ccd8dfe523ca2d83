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

// The index of the element that was refused, n where none was, -1 for a bad wire.
Napi::Value accepted(Napi::Env env, terse_codec_status status, size_t n, size_t bad) {
    if (status == TERSE_CODEC_BAD_WIRE) return Napi::Number::New(env, -1);
    if (status != TERSE_CODEC_NOT_FINITE && status != TERSE_CODEC_DOES_NOT_FIT) throw_unless_ok(env, status);
    return Napi::Number::New(env, static_cast<double>(status == TERSE_CODEC_OK ? n : bad));
}

Napi::Value encode(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n;
    const float* x = floats_of(info[1], "x", n);
    WireCall call(info, codec, n, 0, 2);
    const terse_codec_status status = terse_codec_encode(&codec, call.wire, call.bytes, x, n, &call.options.c,
                                                         &call.bad);
    return accepted(info.Env(), status, n, call.bad);
}

Napi::Value encode_with_feedback(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n;
    const float* x = floats_of(info[1], "x", n);
    float* error = so_many_floats_of(info[2], "error", n);
    WireCall call(info, codec, n, 0, 3);
    const terse_codec_status status = terse_codec_encode_with_feedback(&codec, call.wire, call.bytes, x, error, n,
                                                                       &call.options.c, &call.bad);
    return accepted(info.Env(), status, n, call.bad);
}

Napi::Value encode_sum_with_feedback(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n;
    float* error = floats_of(info[2], "error", n);
    WireCall call(info, codec, n, 0, 3);
    const Wires wires(info[1], "wires", call.bytes);
    const terse_codec_status status = terse_codec_encode_sum_with_feedback(&codec, call.wire, call.bytes,
                                                                           wires.pointers.data(), wires.pointers.size(),
                                                                           error, n, &call.options.c, &call.bad);
    return accepted(info.Env(), status, n, call.bad);
}

Napi::Value encode_momentum(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n;
    float* error = floats_of(info[3], "error", n);
    const float *m = so_many_floats_of(info[1], "m", n), *g = so_many_floats_of(info[2], "g", n);
    WireCall call(info, codec, n, 0, 4);
    const auto weight = [given = options_of(info, 5)](const char* name) { return number_of(given.Get(name), name); };
    const terse_momentum weights = {weight("keep"), weight("add"), weight("sent")};
    const terse_codec_status status = terse_codec_encode_momentum(&codec, call.wire, call.bytes, m, g, error, n,
                                                                  &weights, &call.options.c, &call.bad);
    return accepted(info.Env(), status, n, call.bad);
}

Napi::Value encode_sum(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n;
    float* error = floats_of(info[2], "error", n);
    WireCall call(info, codec, n, 0, 3);
    const Wires wires(info[1], "wires", call.bytes);
    const float sent = number_of(options_of(info, 4).Get("sent"), "sent");
    const terse_codec_status status = terse_codec_encode_sum(&codec, call.wire, call.bytes, wires.pointers.data(),
                                                             wires.pointers.size(), error, n, sent, &call.options.c,
                                                             &call.bad);
    return accepted(info.Env(), status, n, call.bad);
}

template <auto decode>
Napi::Value decode_by(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n;
    float* to = floats_of(info[0], "sum", n);
    const WireCall call(info, codec, n, 1, 2);
    const terse_codec_status status = decode(&codec, to, n, call.wire, call.bytes, &call.options.c);
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
        add_method<wire_bytes>(object, "wireBytes", codec);
        add_method<encode>(object, "encode", codec);
        add_method<encode_with_feedback>(object, "encodeWithFeedback", codec);
        add_method<encode_sum_with_feedback>(object, "encodeSumWithFeedback", codec);
        add_method<decode_by<terse_codec_decode_add>>(object, "decodeAdd", codec);
        add_method<decode_by<terse_codec_decode>>(object, "decode", codec);
        if (codec->encode_momentum) {
            add_method<encode_momentum>(object, "encodeMomentum", codec);
            add_method<encode_sum>(object, "encodeSum", codec);
        }
        if (codec->scales) add_method<scales_of>(object, "scales", codec);
        list[i] = object;
    }
    return list;
}

}  // namespace terse::codecs_binding
