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

// Sets what a property says, where there is one.
template <auto take, typename T>
void read(const Napi::Object& from, const char* name, T& to) {
    const Napi::Value value = from.Get(name);
    if (!value.IsUndefined()) to = take(value, name);
}

// Sets which of the words a property is.
template <typename Word>
void read_word(const Napi::Object& from, const char* name, Word& to, std::initializer_list<const char*> words) {
    const Napi::Value value = from.Get(name);
    if (value.IsUndefined()) return;
    int i = 0;
    std::string listed;
    for (const char* word : words) {
        if (value.IsString() && value.As<Napi::String>().Utf8Value() == word) {
            to = static_cast<Word>(i);
            return;
        }
        listed += (i++ ? ", \"" : "\"") + std::string(word) + "\"";
    }
    throw Napi::TypeError::New(from.Env(), std::string(name) + ": expected one of " + listed);
}

bool truth_of(const Napi::Value& value, const char*) { return value.ToBoolean(); }

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

float number_of(const Napi::Value& value, const char* what) {
    if (!value.IsNumber()) throw Napi::TypeError::New(value.Env(), std::string(what) + ": expected a number");
    return value.As<Napi::Number>().FloatValue();
}

Options::Options(const Napi::Object& parameters) {
    c.size = sizeof c;
    c.scale = 1.0f;
    c.decay = 1.0f;
    read<small_of>(parameters, "bits", c.bits);
    read<small_of>(parameters, "width", c.width);
    read<small_of>(parameters, "ranks", c.ranks);
    read<truth_of>(parameters, "unscaled", c.unscaled);
    read_word(parameters, "levels", c.levels, {"uniform", "without-zero", "logarithmic"});
    read_word(parameters, "indices", c.indices, {"fixed", "elias-fano"});
    read_word(parameters, "values", c.values, {"f32", "f16", "2bit", "sign"});
    read<small_of>(parameters, "dimensions", c.dimensions);
    read<small_of>(parameters, "side", c.side);
    read<count_of>(parameters, "block", c.block);
    read<count_of>(parameters, "k", c.k);
    read<number_of>(parameters, "clip", c.clip);
    const Napi::Value given = parameters.Get("segments");
    if (given.IsUndefined()) return;
    if (!given.IsArray()) throw Napi::TypeError::New(given.Env(), "segments: expected an array of lengths");
    const auto lengths = given.As<Napi::Array>();
    size_t end = 0;
    segments.reserve(lengths.Length() + 1);
    for (uint32_t i = 0; i < lengths.Length(); i++) segments.push_back(end += count_of(lengths.Get(i), "segments"));
    c.segments = segments.data();  // not null: reserved
    c.segment_count = lengths.Length();
}

Options::Options(const Napi::Object& parameters, const Napi::Object& call, size_t n) : Options(parameters) {
    read<zero_of>(call, "zero", c.zero);
    read<count_of>(call, "seed", c.seed);
    read<count_of>(call, "step", c.step);
    read<count_of>(call, "index", c.index);
    read<number_of>(call, "scale", c.scale);
    read<number_of>(call, "decay", c.decay);
    const Napi::Value hold = call.Get("hold"), units = call.Get("units");
    if (!hold.IsUndefined()) c.hold = bytes_of(hold, "hold", bytes_of_bits(n));
    static const float none = 0;  // an empty array may have no address
    if (!units.IsUndefined()) c.units = floats_of(units, "units", c.unit_count);
    if (!units.IsUndefined() && !c.units) c.units = &none;
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

WireCall::WireCall(const Napi::CallbackInfo& info, const terse_codec& codec, size_t n, size_t wire_at,
                   size_t options_at)
    : n(n),
      options(options_of(info, options_at), options_of(info, options_at + 1), n),
      bytes(wire_bytes_of(info.Env(), codec, n, options)),
      wire(bytes_of(info[wire_at], "wire", bytes)) {}

}  // namespace terse::codecs_binding
