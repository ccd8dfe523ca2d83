// The tables of terse/codecs.h as JavaScript objects: one object per implementation, one method per function.
// Lengths are checked here, so that no call from JavaScript reads or writes outside its arrays.
#include <napi.h>

#include <memory>
#include <string>
#include <vector>

#include "terse/codecs.h"
#include "terse/memory.h"

namespace {

using terse::DType;
using terse::Memory;

Memory memory_of(const Napi::Value& value, const char* what, DType dtype) {
    const Memory memory = terse::memory_of(value, what);
    if (memory.dtype != dtype) throw Napi::TypeError::New(value.Env(), std::string(what) + ": expected " + terse::name_of(dtype) + ", got " + terse::name_of(memory.dtype));
    if (!memory.on_cpu) throw Napi::TypeError::New(value.Env(), std::string(what) + ": this codec runs on the CPU, and the memory is on another device");
    return memory;
}

uint8_t* bytes_of(const Napi::Value& value, const char* what, size_t length) {
    const Memory memory = memory_of(value, what, DType::u8);
    if (memory.length != length)
        throw Napi::RangeError::New(value.Env(), std::string(what) + ": expected " + std::to_string(length) + " bytes, got " + std::to_string(memory.length));
    return static_cast<uint8_t*>(memory.data);
}

float* floats_of(const Napi::Value& value, const char* what, size_t& n) {
    const Memory memory = memory_of(value, what, DType::f32);
    n = memory.length;
    return static_cast<float*>(memory.data);
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

Napi::Value wire_bytes(const Napi::CallbackInfo& info) {
    return Napi::Number::New(info.Env(), static_cast<double>(codec_of(info).wire_bytes(count_of(info[0], "n"))));
}

const uint8_t* hold_of(const Napi::Object& options, size_t n) {
    const Napi::Value hold = options.Get("hold");
    return hold.IsUndefined() ? nullptr : bytes_of(hold, "hold", n / 8 + (n % 8 != 0));
}

Napi::Value encode(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n;
    const float* x = floats_of(info[1], "x", n);
    uint8_t* wire = bytes_of(info[0], "wire", codec.wire_bytes(n));
    const Napi::Object given = options_of(info, 2);
    const terse_codec_options options = {zero_of(given.Get("zero"), "zero"), hold_of(given, n), 1.0f};
    return Napi::Number::New(info.Env(), static_cast<double>(codec.encode(wire, x, n, &options)));
}

void decode_add(const Napi::CallbackInfo& info) {
    const terse_codec& codec = codec_of(info);
    size_t n;
    float* sum = floats_of(info[0], "sum", n);
    const uint8_t* wire = bytes_of(info[1], "wire", codec.wire_bytes(n));
    const Napi::Object given = options_of(info, 2);
    const Napi::Value scale = given.Get("scale");
    if (!scale.IsNumber()) throw Napi::TypeError::New(info.Env(), "scale: expected a number");
    const terse_codec_options options = {TERSE_ZERO_PLUS, hold_of(given, n), scale.As<Napi::Number>().FloatValue()};
    codec.decode_add(sum, wire, n, &options);
}

struct Wires {
    std::vector<uint8_t*> pointers;
    Wires(const Napi::Value& value, const char* what, size_t n) {
        if (!value.IsArray()) throw Napi::TypeError::New(value.Env(), std::string(what) + ": expected an array of Uint8Array");
        const auto array = value.As<Napi::Array>();
        for (uint32_t i = 0; i < array.Length(); i++)
            pointers.push_back(bytes_of(array.Get(i), (what + ("[" + std::to_string(i) + "]")).c_str(), n / 8 + (n % 8 != 0)));
    }
};

void throw_unless_ok(Napi::Env env, terse_codec_status status) {
    if (status != TERSE_CODEC_OK) throw Napi::RangeError::New(env, terse_codec_sentence(status));
}

void majority(const Napi::CallbackInfo& info) {
    const size_t n = count_of(info[2], "n");
    uint8_t* out = bytes_of(info[0], "out", n / 8 + (n % 8 != 0));
    const Wires votes(info[1], "votes", n);
    const terse_zero tie = zero_of(options_of(info, 3).Get("tie"), "tie");
    throw_unless_ok(info.Env(), vote_of(info).majority(out, votes.pointers.data(), votes.pointers.size(), n, tie));
}

void majority_or_zero(const Napi::CallbackInfo& info) {
    const size_t n = count_of(info[3], "n");
    uint8_t* plus = bytes_of(info[0], "plus", n / 8 + (n % 8 != 0));
    uint8_t* nonzero = bytes_of(info[1], "nonzero", n / 8 + (n % 8 != 0));
    const Wires votes(info[2], "votes", n);
    throw_unless_ok(info.Env(), vote_of(info).majority_or_zero(plus, nonzero, votes.pointers.data(), votes.pointers.size(), n));
}

void tally(const Napi::CallbackInfo& info) {
    const size_t n = count_of(info[2], "n");
    const Wires planes(info[0], "planes", n), votes(info[1], "votes", n);
    const size_t needed = terse_vote_planes(votes.pointers.size());
    if (planes.pointers.size() != needed)
        throw Napi::RangeError::New(info.Env(), "planes: a count of " + std::to_string(votes.pointers.size()) + " votes takes " + std::to_string(needed) + " planes, got " + std::to_string(planes.pointers.size()));
    throw_unless_ok(info.Env(), vote_of(info).tally(planes.pointers.data(), votes.pointers.data(), votes.pointers.size(), n));
}

// The tables are static constants, so a bare pointer is all that a method needs to carry.
template <typename Table>
void* data_of(const Table* table) { return const_cast<Table*>(table); }

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
        object["decodeAdd"] = Napi::Function::New<decode_add>(env, "decodeAdd", data_of(codec));
        list[i] = object;
    }
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
    exports["codecs"] = Napi::Function::New<codecs>(env, "codecs");
    exports["votes"] = Napi::Function::New<votes>(env, "votes");
    return exports;
}

}  // namespace

NODE_API_MODULE(codecs, init)
