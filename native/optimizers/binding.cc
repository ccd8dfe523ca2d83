// The tables of terse/optimizers.h as JavaScript objects: one object per implementation, one method per function.
// Lengths, element types and devices are checked here, so that no call from JavaScript reads or writes outside its arrays.
#include <napi.h>

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "terse/memory.h"
#include "terse/optimizers.h"
#include "terse/parallel.h"

namespace {

using terse::DType;
using terse::Memory;

Memory memory_of(const Napi::Value& value, const char* what, DType dtype) {
    const Memory memory = terse::memory_of(value, what);
    if (memory.dtype != dtype) throw Napi::TypeError::New(value.Env(), std::string(what) + ": expected " + terse::name_of(dtype) + ", got " + terse::name_of(memory.dtype));
    if (!memory.on_cpu) throw Napi::TypeError::New(value.Env(), std::string(what) + ": this kernel runs on the CPU, and the memory is on another device");
    return memory;
}

[[noreturn]] void throw_length(Napi::Env env, const char* what, size_t got, size_t expected, const char* unit) {
    throw Napi::RangeError::New(env, std::string(what) + ": expected " + std::to_string(expected) + " " + unit + ", got " + std::to_string(got));
}

// The first array of a call says how long the others are.
float* floats_of(const Napi::Value& value, const char* what, size_t& n) {
    const Memory memory = memory_of(value, what, DType::f32);
    n = memory.length;
    return static_cast<float*>(memory.data);
}

float* more_floats_of(const Napi::Value& value, const char* what, size_t n) {
    const Memory memory = memory_of(value, what, DType::f32);
    if (memory.length != n) throw_length(value.Env(), what, memory.length, n, "floats, as many as the first array has");
    return static_cast<float*>(memory.data);
}

uint8_t* bits_of(const Napi::Value& value, const char* what, size_t n) {
    const Memory memory = memory_of(value, what, DType::u8);
    const size_t bytes = n / 8 + (n % 8 != 0);
    if (memory.length != bytes) throw_length(value.Env(), what, memory.length, bytes, "bytes, one bit a float");
    return static_cast<uint8_t*>(memory.data);
}

Napi::Object options_of(const Napi::CallbackInfo& info, size_t i) {
    if (!info[i].IsObject()) throw Napi::TypeError::New(info.Env(), "options: expected an object");
    return info[i].As<Napi::Object>();
}

double number_of(const Napi::Object& options, const char* name) {
    const Napi::Value value = options.Get(name);
    if (!value.IsNumber() || !std::isfinite(value.As<Napi::Number>().DoubleValue()))
        throw Napi::TypeError::New(options.Env(), std::string(name) + ": expected a finite number");
    return value.As<Napi::Number>().DoubleValue();
}

terse_lion_zero zero_of(const Napi::Object& options, bool can_hold) {
    const Napi::Value value = options.Get("zero");
    const std::string name = value.IsString() ? value.As<Napi::String>().Utf8Value() : "";
    if (name == "plus") return TERSE_LION_PLUS;
    if (name == "minus") return TERSE_LION_MINUS;
    if (name == "hold" && can_hold) return TERSE_LION_HOLD;
    throw Napi::TypeError::New(options.Env(), can_hold ? "zero: expected \"plus\", \"minus\" or \"hold\"" : "zero: expected \"plus\" or \"minus\"");
}

// The factor of options that have one.
float gradient_scale_of(const Napi::Object& options) {
    return options.Get("gradientScale").IsUndefined() ? 1.0f : static_cast<float>(number_of(options, "gradientScale"));
}

constexpr size_t CUT = 4096;  // elements: whole bytes of signs, whole groups of terse/walk.h

// part(begin, end) on all threads; every lane on its own, so where it is cut changes nothing.
template <typename Part>
void in_parallel(size_t n, Part part) {
    terse_parallel(n, CUT, [](void* context, size_t begin, size_t end) { (*static_cast<Part*>(context))(begin, end); }, &part);
}

// The same for kernels that say how many they accepted: n, or the index of the first that one refused.
template <typename Part>
size_t accepted_in_parallel(size_t n, Part part) {
    std::atomic<size_t> accepted{n};
    in_parallel(n, [&](size_t begin, size_t end) {
        const size_t good = begin + part(begin, end - begin);
        size_t least = accepted;
        while (good < end && good < least && !accepted.compare_exchange_weak(least, good)) {}
    });
    return accepted;
}

template <typename Table>
const Table& table_of(const Napi::CallbackInfo& info) { return *static_cast<const Table*>(info.Data()); }

Napi::Value accepted(const Napi::CallbackInfo& info, size_t count) { return Napi::Number::New(info.Env(), static_cast<double>(count)); }

Napi::Value lion_vote(const Napi::CallbackInfo& info) {
    size_t n;
    float* m = floats_of(info[1], "m", n);
    const float* g = more_floats_of(info[2], "g", n);
    uint8_t* wire = bits_of(info[0], "wire", n);
    const Napi::Object given = options_of(info, 3);
    const terse_lion_options options = {0, number_of(given, "beta1"), number_of(given, "beta2"), 0, zero_of(given, false), gradient_scale_of(given)};
    const terse_lion& lion = table_of<terse_lion>(info);
    return accepted(info, accepted_in_parallel(n, [&](size_t i, size_t count) { return lion.vote(wire + i / 8, m + i, g + i, count, &options); }));
}

Napi::Value lion_step(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = floats_of(info[0], "θ", n);
    float* m = more_floats_of(info[1], "m", n);
    const float* g = more_floats_of(info[2], "g", n);
    const Napi::Object given = options_of(info, 3);
    const terse_lion_options options = {number_of(given, "lr"), number_of(given, "beta1"), number_of(given, "beta2"), number_of(given, "weightDecay"), zero_of(given, true), gradient_scale_of(given)};
    const terse_lion& lion = table_of<terse_lion>(info);
    return accepted(info, accepted_in_parallel(n, [&](size_t i, size_t count) { return lion.step(theta + i, m + i, g + i, count, &options); }));
}

struct Change {
    float keep, scale;
    explicit Change(const Napi::Object& given) : keep(static_cast<float>(number_of(given, "keep"))), scale(static_cast<float>(number_of(given, "scale"))) {}
};

void apply_signs(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = floats_of(info[0], "θ", n);
    const uint8_t* wire = bits_of(info[1], "wire", n);
    const Change change(options_of(info, 2));
    const terse_lion& lion = table_of<terse_lion>(info);
    in_parallel(n, [&](size_t i, size_t end) { lion.apply_signs(theta + i, wire + i / 8, end - i, change.keep, change.scale); });
}

void apply_ternary(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = floats_of(info[0], "θ", n);
    const uint8_t* plus = bits_of(info[1], "plus", n);
    const uint8_t* nonzero = bits_of(info[2], "nonzero", n);
    const Change change(options_of(info, 3));
    const terse_lion& lion = table_of<terse_lion>(info);
    in_parallel(n, [&](size_t i, size_t end) { lion.apply_ternary(theta + i, plus + i / 8, nonzero + i / 8, end - i, change.keep, change.scale); });
}

void apply_tally(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    size_t n;
    float* theta = floats_of(info[0], "θ", n);
    const double ranks = info[2].IsNumber() ? info[2].As<Napi::Number>().DoubleValue() : 0;
    if (!(ranks >= 1 && ranks <= double{TERSE_TALLY_MAX_RANKS}) || ranks != std::floor(ranks)) throw Napi::RangeError::New(env, terse_optimizer_sentence(TERSE_OPTIMIZER_BAD_RANKS));
    if (!info[1].IsArray()) throw Napi::TypeError::New(env, "planes: expected an array of Uint8Array");
    const auto array = info[1].As<Napi::Array>();
    std::vector<const uint8_t*> planes;
    for (uint32_t k = 0; k < array.Length(); k++) planes.push_back(bits_of(array.Get(k), ("planes[" + std::to_string(k) + "]").c_str(), n));
    size_t needed = 0;
    for (auto left = static_cast<unsigned>(ranks); left; left >>= 1) needed++;
    if (planes.size() != needed) throw_length(env, "planes", planes.size(), needed, "planes, one per bit of ranks");
    const Change change(options_of(info, 3));
    const terse_lion& lion = table_of<terse_lion>(info);
    in_parallel(n, [&](size_t i, size_t end) {
        std::vector<const uint8_t*> here(planes);
        for (auto& plane : here) plane += i / 8;
        lion.apply_tally(theta + i, here.data(), static_cast<size_t>(ranks), end - i, change.keep, change.scale);
    });
}

Napi::Value adamw_step(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    size_t n;
    float* theta = floats_of(info[0], "θ", n);
    float* m = more_floats_of(info[1], "m", n);
    float* v = more_floats_of(info[2], "v", n);
    const float* g = more_floats_of(info[3], "g", n);
    const Napi::Object given = options_of(info, 4);
    const double step = number_of(given, "step");
    if (!(step >= 1 && step <= 9007199254740991.0) || step != std::floor(step)) throw Napi::RangeError::New(env, "step: expected a whole number, 1 for the first update");
    const terse_adamw_options options = {number_of(given, "lr"), number_of(given, "beta1"), number_of(given, "beta2"), number_of(given, "eps"), number_of(given, "weightDecay"), static_cast<uint64_t>(step), gradient_scale_of(given)};
    const terse_adamw& adamw = table_of<terse_adamw>(info);
    return accepted(info, accepted_in_parallel(n, [&](size_t i, size_t count) { return adamw.step(theta + i, m + i, v + i, g + i, count, &options); }));
}

Napi::Value sum_of_squares(const Napi::CallbackInfo& info) {
    size_t n;
    const float* x = floats_of(info[0], "x", n);
    return Napi::Number::New(info.Env(), terse_sum_of_squares(&table_of<terse_reductions>(info), x, n));
}

Napi::Value address_of(const Napi::CallbackInfo& info) {
    return Napi::BigInt::New(info.Env(), static_cast<uint64_t>(reinterpret_cast<uintptr_t>(terse::memory_of(info[0], "memory").data)));
}

// The tables are static constants, so a bare pointer is all that a method needs to carry.
template <typename Table>
void* data_of(const Table* table) { return const_cast<Table*>(table); }

Napi::Value lions(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    Napi::Array list = Napi::Array::New(env);
    const terse_lion* lion;
    for (uint32_t i = 0; (lion = terse_lion_at(i)); i++) {
        Napi::Object object = Napi::Object::New(env);
        object["implementation"] = lion->implementation;
        object["vote"] = Napi::Function::New<lion_vote>(env, "vote", data_of(lion));
        object["step"] = Napi::Function::New<lion_step>(env, "step", data_of(lion));
        object["applySigns"] = Napi::Function::New<apply_signs>(env, "applySigns", data_of(lion));
        object["applyTernary"] = Napi::Function::New<apply_ternary>(env, "applyTernary", data_of(lion));
        object["applyTally"] = Napi::Function::New<apply_tally>(env, "applyTally", data_of(lion));
        list[i] = object;
    }
    return list;
}

Napi::Value adamws(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    Napi::Array list = Napi::Array::New(env);
    const terse_adamw* adamw;
    for (uint32_t i = 0; (adamw = terse_adamw_at(i)); i++) {
        Napi::Object object = Napi::Object::New(env);
        object["implementation"] = adamw->implementation;
        object["step"] = Napi::Function::New<adamw_step>(env, "step", data_of(adamw));
        list[i] = object;
    }
    return list;
}

Napi::Value reductions(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    Napi::Array list = Napi::Array::New(env);
    const terse_reductions* reductions;
    for (uint32_t i = 0; (reductions = terse_reductions_at(i)); i++) {
        Napi::Object object = Napi::Object::New(env);
        object["implementation"] = reductions->implementation;
        object["sumOfSquares"] = Napi::Function::New<sum_of_squares>(env, "sumOfSquares", data_of(reductions));
        list[i] = object;
    }
    return list;
}

Napi::Value fingerprint(const Napi::CallbackInfo& info) {
    size_t n = 0;
    const float* x = floats_of(info[0], "x", n);
    return Napi::BigInt::New(info.Env(), terse_fingerprint(x, n));
}

void use_threads(const Napi::CallbackInfo& info) {
    const double threads = info[0].IsNumber() ? info[0].As<Napi::Number>().DoubleValue() : 0;
    if (!(threads >= 1 && threads <= 65536) || threads != std::floor(threads)) throw Napi::RangeError::New(info.Env(), "threads: expected a whole number, 1 or more");
    terse_parallel_use(static_cast<unsigned>(threads));
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
    exports["abi"] = Napi::Number::New(env, terse_optimizers_abi());
    exports["lions"] = Napi::Function::New<lions>(env, "lions");
    exports["adamws"] = Napi::Function::New<adamws>(env, "adamws");
    exports["reductions"] = Napi::Function::New<reductions>(env, "reductions");
    exports["fingerprint"] = Napi::Function::New<fingerprint>(env, "fingerprint");
    exports["useThreads"] = Napi::Function::New<use_threads>(env, "useThreads");
    exports["addressOf"] = Napi::Function::New<address_of>(env, "addressOf");
    return exports;
}

}  // namespace

NODE_API_MODULE(optimizers, init)
