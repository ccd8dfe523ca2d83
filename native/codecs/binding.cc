// The tables of terse/codecs.h as JavaScript objects: one object per implementation, one method per function.
// Lengths are checked here, so that no call from JavaScript reads or writes outside its arrays.
#include <dlfcn.h>
#include <napi.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "terse/codecs.h"
#include "terse/codecs_cuda.h"
#include "terse/napi_buffer.h"

namespace {

using terse::DType;
using terse::BufferView;

BufferView buffer_of(const Napi::Value& value, const char* what, DType dtype) {
    const BufferView memory = terse::buffer_of(value, what);
    if (memory.dtype != dtype)
        throw Napi::TypeError::New(value.Env(), std::string(what) + ": expected " + terse::name_of(dtype) + ", got " +
                                                    terse::name_of(memory.dtype));
    if (!memory.on_cpu)
        throw Napi::TypeError::New(
            value.Env(), std::string(what) + ": this codec runs on the CPU, and the memory is on another device");
    return memory;
}

uint8_t* bytes_of(const Napi::Value& value, const char* what, size_t length) {
    const BufferView memory = buffer_of(value, what, DType::u8);
    if (memory.length != length)
        throw Napi::RangeError::New(value.Env(), std::string(what) + ": expected " + std::to_string(length) +
                                                     " bytes, got " + std::to_string(memory.length));
    return static_cast<uint8_t*>(memory.data);
}

float* floats_of(const Napi::Value& value, const char* what, size_t& n) {
    const BufferView memory = buffer_of(value, what, DType::f32);
    n = memory.length;
    return static_cast<float*>(memory.data);
}

float* so_many_floats_of(const Napi::Value& value, const char* what, size_t expected) {
    size_t n;
    float* floats = floats_of(value, what, n);
    if (n != expected)
        throw Napi::RangeError::New(value.Env(), std::string(what) + ": expected " + std::to_string(expected) +
                                                     " floats, got " + std::to_string(n));
    return floats;
}

size_t count_of(const Napi::Value& value, const char* what) {
    const double count = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : -1;
    if (!(count >= 0 && count <= 9007199254740991.0) || count != static_cast<double>(static_cast<int64_t>(count)))
        throw Napi::RangeError::New(value.Env(), std::string(what) + ": expected a whole number, 0 or more");
    return static_cast<size_t>(count);
}

terse_zero zero_of(const Napi::Value& value, const char* what) {
    if (value.IsString()) {
        const std::string name = value.As<Napi::String>();
        if (name == "plus") return TERSE_ZERO_PLUS;
        if (name == "minus") return TERSE_ZERO_MINUS;
    }
    throw Napi::TypeError::New(value.Env(), std::string(what) + ": expected \"plus\" or \"minus\"");
}

Napi::Object options_of(const Napi::CallbackInfo& info, size_t i) {
    if (!info[i].IsObject()) throw Napi::TypeError::New(info.Env(), "options: expected an object");
    return info[i].As<Napi::Object>();
}

const terse_codec& codec_of(const Napi::CallbackInfo& info) { return *static_cast<const terse_codec*>(info.Data()); }
const terse_vote& vote_of(const Napi::CallbackInfo& info) { return *static_cast<const terse_vote*>(info.Data()); }

void throw_unless_ok(Napi::Env env, terse_codec_status status) {
    if (status != TERSE_CODEC_OK) throw Napi::RangeError::New(env, terse_codec_sentence(status));
}

// A property that may be absent.
template <typename Read>
void read(const Napi::Object& from, const char* name, Read take) {
    const Napi::Value value = from.Get(name);
    if (!value.IsUndefined()) take(value, name);
}

uint32_t small_of(const Napi::Value& value, const char* what) {
    const size_t count = count_of(value, what);
    if (count > UINT32_MAX)
        throw Napi::RangeError::New(value.Env(), std::string(what) + ": expected at most 4294967295");
    return static_cast<uint32_t>(count);
}

// Which of the words it is.
int word_of(const Napi::Value& value, const char* what, std::initializer_list<const char*> words) {
    int i = 0;
    std::string listed;
    for (const char* word : words) {
        if (value.IsString() && value.As<Napi::String>().Utf8Value() == word) return i;
        listed += (i++ ? ", \"" : "\"") + std::string(word) + "\"";
    }
    throw Napi::TypeError::New(value.Env(), std::string(what) + ": expected one of " + listed);
}

// The options of one call, and the memory that they point to.
struct Options {
    terse_codec_options c{};
    std::vector<size_t> segments;

    // The options that determine the wire.
    explicit Options(const Napi::Object& parameters) {
        c.size = sizeof c;
        c.scale = 1.0f;
        c.decay = 1.0f;
        read(parameters, "bits", [&](auto& value, auto* name) { c.bits = small_of(value, name); });
        read(parameters, "width", [&](auto& value, auto* name) { c.width = small_of(value, name); });
        read(parameters, "ranks", [&](auto& value, auto* name) { c.ranks = small_of(value, name); });
        read(parameters, "unscaled", [&](auto& value, auto*) { c.unscaled = value.ToBoolean(); });
        read(parameters, "levels", [&](auto& value, auto* name) {
            c.levels = static_cast<terse_levels>(word_of(value, name, {"uniform", "without-zero", "logarithmic"}));
        });
        read(parameters, "indices", [&](auto& value, auto* name) {
            c.indices = static_cast<terse_indices>(word_of(value, name, {"fixed", "elias-fano"}));
        });
        read(parameters, "values", [&](auto& value, auto* name) {
            c.values = static_cast<terse_values>(word_of(value, name, {"f32", "f16", "2bit", "sign"}));
        });
        read(parameters, "dimensions", [&](auto& value, auto* name) { c.dimensions = small_of(value, name); });
        read(parameters, "side", [&](auto& value, auto* name) { c.side = small_of(value, name); });
        read(parameters, "block", [&](auto& value, auto* name) { c.block = count_of(value, name); });
        read(parameters, "k", [&](auto& value, auto* name) { c.k = count_of(value, name); });
        read(parameters, "clip", [&](auto& value, auto* name) {
            if (!value.IsNumber()) throw Napi::TypeError::New(value.Env(), std::string(name) + ": expected a number");
            c.clip = value.template As<Napi::Number>().FloatValue();
        });
        read(parameters, "segments", [&](auto& value, auto* name) {
            if (!value.IsArray())
                throw Napi::TypeError::New(value.Env(), std::string(name) + ": expected an array of lengths");
            const auto lengths = value.template As<Napi::Array>();
            size_t end = 0;
            segments.reserve(lengths.Length() + 1);
            for (uint32_t i = 0; i < lengths.Length(); i++)
                segments.push_back(end += count_of(lengths.Get(i), "segments"));
            c.segments = segments.data();  // not null: reserved
            c.segment_count = lengths.Length();
        });
    }

    // And the options of one call.
    Options(const Napi::Object& parameters, const Napi::Object& call, size_t n) : Options(parameters) {
        read(call, "zero", [&](auto& value, auto* name) { c.zero = zero_of(value, name); });
        read(call, "hold", [&](auto& value, auto* name) { c.hold = bytes_of(value, name, n / 8 + (n % 8 != 0)); });
        read(call, "seed", [&](auto& value, auto* name) { c.seed = count_of(value, name); });
        read(call, "step", [&](auto& value, auto* name) { c.step = count_of(value, name); });
        read(call, "index", [&](auto& value, auto* name) { c.index = count_of(value, name); });
        read(call, "scale", [&](auto& value, auto* name) {
            if (!value.IsNumber()) throw Napi::TypeError::New(value.Env(), std::string(name) + ": expected a number");
            c.scale = value.template As<Napi::Number>().FloatValue();
        });
        read(call, "decay", [&](auto& value, auto* name) {
            if (!value.IsNumber()) throw Napi::TypeError::New(value.Env(), std::string(name) + ": expected a number");
            c.decay = value.template As<Napi::Number>().FloatValue();
        });
        read(call, "units", [&](auto& value, auto* name) { c.units = floats_of(value, name, c.unit_count); });
        static const float none = 0;  // an empty array may have no address
        if (!c.units && !call.Get("units").IsUndefined()) c.units = &none;
    }

    Options(const Options&) = delete;
};

size_t wire_bytes_of(const Napi::Env env, const terse_codec& codec, size_t n, const Options& options) {
    size_t bytes = 0;
    throw_unless_ok(env, terse_codec_wire_bytes(&codec, n, &options.c, &bytes));
    return bytes;
}

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

struct Wires {
    std::vector<uint8_t*> pointers;
    Wires(const Napi::Value& value, const char* what, size_t length, bool may_be_null = false) {
        if (!value.IsArray())
            throw Napi::TypeError::New(value.Env(), std::string(what) + ": expected an array of Uint8Array");
        const auto array = value.As<Napi::Array>();
        for (uint32_t i = 0; i < array.Length(); i++) {
            const Napi::Value wire = array.Get(i);
            if (may_be_null && wire.IsNull()) {
                pointers.push_back(nullptr);
                continue;
            }
            static uint8_t nothing;  // an empty array may have no address, which would look like an absent rank
            uint8_t* const bytes = bytes_of(wire, (what + ("[" + std::to_string(i) + "]")).c_str(), length);
            pointers.push_back(bytes ? bytes : &nothing);
        }
    }
};

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

float float_of(const Napi::Object& from, const char* name) {
    const Napi::Value value = from.Get(name);
    if (!value.IsNumber()) throw Napi::TypeError::New(from.Env(), std::string(name) + ": expected a number");
    return value.As<Napi::Number>().FloatValue();
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

constexpr bool may_be_absent = true;
constexpr size_t bytes_of_bits(size_t n) { return n / 8 + (n % 8 != 0); }

void majority(const Napi::CallbackInfo& info) {
    const size_t n = count_of(info[2], "n");
    uint8_t* out = bytes_of(info[0], "out", n / 8 + (n % 8 != 0));
    const Wires votes(info[1], "votes", bytes_of_bits(n), may_be_absent);
    const terse_zero tie = zero_of(options_of(info, 3).Get("tie"), "tie");
    throw_unless_ok(info.Env(), vote_of(info).majority(out, votes.pointers.data(), votes.pointers.size(), n, tie));
}

void majority_or_zero(const Napi::CallbackInfo& info) {
    const size_t n = count_of(info[3], "n");
    uint8_t* plus = bytes_of(info[0], "plus", n / 8 + (n % 8 != 0));
    uint8_t* nonzero = bytes_of(info[1], "nonzero", n / 8 + (n % 8 != 0));
    const Wires votes(info[2], "votes", bytes_of_bits(n), may_be_absent);
    throw_unless_ok(info.Env(),
                    vote_of(info).majority_or_zero(plus, nonzero, votes.pointers.data(), votes.pointers.size(), n));
}

void tally(const Napi::CallbackInfo& info) {
    const size_t n = count_of(info[2], "n");
    const Wires planes(info[0], "planes", bytes_of_bits(n)), votes(info[1], "votes", bytes_of_bits(n), may_be_absent);
    const size_t needed = terse_vote_planes(votes.pointers.size());
    if (planes.pointers.size() != needed)
        throw Napi::RangeError::New(info.Env(), "planes: a count of " + std::to_string(votes.pointers.size()) +
                                                    " votes takes " + std::to_string(needed) + " planes, not " +
                                                    std::to_string(planes.pointers.size()));
    throw_unless_ok(info.Env(),
                    vote_of(info).tally(planes.pointers.data(), votes.pointers.data(), votes.pointers.size(), n));
}

// The tables are static constants, so a bare pointer is all that a method needs to carry.
template <typename Table>
void* data_of(const Table* table) {
    return const_cast<Table*>(table);
}

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
    size_t n, bad = 0;
    int device;
    const float* x = terse::device_floats_of(info[1], "x", n, device);
    const Options options(options_of(info, 2), options_of(info, 3), n);
    const size_t bytes = wire_bytes_of(info.Env(), *codec.definition, n, options);
    uint8_t* wire = bytes_of(info[0], "wire", bytes);
    const terse_codec_status status = cuda.encode(&codec, device, wire, bytes, x, nullptr, n, &options.c, &bad);
    return accepted_on_device(info.Env(), status, n, bad);
}

Napi::Value cuda_encode_with_feedback(const Napi::CallbackInfo& info) {
    const terse_codec_cuda& codec = cuda_codec_of(info);
    size_t n, length, bad = 0;
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
    const Options options(options_of(info, 3), options_of(info, 4), n);
    const size_t bytes = wire_bytes_of(info.Env(), *codec.definition, n, options);
    uint8_t* wire = bytes_of(info[0], "wire", bytes);
    const terse_codec_status status = cuda.encode(&codec, device, wire, bytes, x, error, n, &options.c, &bad);
    return accepted_on_device(info.Env(), status, n, bad);
}

template <int adds>
Napi::Value cuda_decode(const Napi::CallbackInfo& info) {
    const terse_codec_cuda& codec = cuda_codec_of(info);
    size_t n;
    int device;
    float* to = terse::device_floats_of(info[0], "sum", n, device);
    const Options options(options_of(info, 2), options_of(info, 3), n);
    const size_t bytes = wire_bytes_of(info.Env(), *codec.definition, n, options);
    const uint8_t* wire = bytes_of(info[1], "wire", bytes);
    const terse_codec_status status = cuda.decode(&codec, device, to, n, wire, bytes, &options.c, adds);
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

// Every codec of the library at this path, as `codecs` lists those of the CPU.
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
        object["wireBytes"] = Napi::Function::New<cuda_wire_bytes>(env, "wireBytes", data_of(codec));
        object["encode"] = Napi::Function::New<cuda_encode>(env, "encode", data_of(codec));
        object["encodeWithFeedback"] = Napi::Function::New<cuda_encode_with_feedback>(env, "encodeWithFeedback",
                                                                                      data_of(codec));
        object["decodeAdd"] = Napi::Function::New<cuda_decode<true>>(env, "decodeAdd", data_of(codec));
        object["decode"] = Napi::Function::New<cuda_decode<false>>(env, "decode", data_of(codec));
        if (codec->definition->scales)
            object["scales"] = Napi::Function::New<cuda_scales>(env, "scales", data_of(codec));
        list[i] = object;
    }
    return list;
}

// x[i], for error messages: JavaScript cannot read memory behind a pointer.
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

void use_threads(const Napi::CallbackInfo& info) {
    const uint32_t threads = small_of(info[0], "threads");
    if (threads == 0) throw Napi::RangeError::New(info.Env(), "threads: expected 1 or more");
    terse_codecs_use_threads(threads);
}

Napi::Value implementations(const Napi::CallbackInfo& info) {
    Napi::Array list = Napi::Array::New(info.Env());
    const char* name;
    for (uint32_t i = 0; (name = terse_implementation_at(i)); i++) list[i] = name;
    return list;
}

Napi::Value votes(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    Napi::Array list = Napi::Array::New(env);
    const terse_vote* vote;
    for (uint32_t i = 0; (vote = terse_vote_at(i)); i++) {
        Napi::Object object = Napi::Object::New(env);
        object["name"] = "vote";
        object["implementation"] = vote->implementation;
        object["majority"] = Napi::Function::New<majority>(env, "majority", data_of(vote));
        object["majorityOrZero"] = Napi::Function::New<majority_or_zero>(env, "majorityOrZero", data_of(vote));
        object["tally"] = Napi::Function::New<tally>(env, "tally", data_of(vote));
        list[i] = object;
    }
    return list;
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
    exports["abi"] = Napi::Number::New(env, terse_codecs_abi());
    exports["openCuda"] = Napi::Function::New<open_cuda>(env, "openCuda");
    exports["floatAt"] = Napi::Function::New<float_at>(env, "floatAt");
    exports["useThreads"] = Napi::Function::New<use_threads>(env, "useThreads");
    exports["implementations"] = Napi::Function::New<implementations>(env, "implementations");
    exports["codecs"] = Napi::Function::New<codecs>(env, "codecs");
    exports["votes"] = Napi::Function::New<votes>(env, "votes");
    return exports;
}

}  // namespace

NODE_API_MODULE(codecs, init)
