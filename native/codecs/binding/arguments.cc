#include "arguments.h"

namespace terse::codecs_binding {

namespace {

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

// A property that may be absent.
template <typename Read>
void read(const Napi::Object& from, const char* name, Read take) {
    const Napi::Value value = from.Get(name);
    if (!value.IsUndefined()) take(value, name);
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

}  // namespace

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

uint32_t small_of(const Napi::Value& value, const char* what) {
    const size_t count = count_of(value, what);
    if (count > UINT32_MAX)
        throw Napi::RangeError::New(value.Env(), std::string(what) + ": expected at most 4294967295");
    return static_cast<uint32_t>(count);
}

float float_of(const Napi::Object& from, const char* name) {
    const Napi::Value value = from.Get(name);
    if (!value.IsNumber()) throw Napi::TypeError::New(from.Env(), std::string(name) + ": expected a number");
    return value.As<Napi::Number>().FloatValue();
}

Options::Options(const Napi::Object& parameters) {
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
        for (uint32_t i = 0; i < lengths.Length(); i++) segments.push_back(end += count_of(lengths.Get(i), "segments"));
        c.segments = segments.data();  // not null: reserved
        c.segment_count = lengths.Length();
    });
}

Options::Options(const Napi::Object& parameters, const Napi::Object& call, size_t n) : Options(parameters) {
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

Wires::Wires(const Napi::Value& value, const char* what, size_t length, bool may_be_null) {
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

void throw_unless_ok(Napi::Env env, terse_codec_status status) {
    if (status != TERSE_CODEC_OK) throw Napi::RangeError::New(env, terse_codec_sentence(status));
}

size_t wire_bytes_of(const Napi::Env env, const terse_codec& codec, size_t n, const Options& options) {
    size_t bytes = 0;
    throw_unless_ok(env, terse_codec_wire_bytes(&codec, n, &options.c, &bytes));
    return bytes;
}

}  // namespace terse::codecs_binding
