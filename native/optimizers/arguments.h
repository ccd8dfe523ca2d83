// The arguments of a call from JavaScript. Lengths, element types and devices are checked here, so that no kernel reads
// or writes outside its arrays.
#pragma once
#include <napi.h>

#include <cmath>
#include <string>
#include <vector>

#include "terse/napi_buffer.h"
#include "terse/optimizers.h"

using terse::DType;
using terse::BufferView;

inline BufferView buffer_of(const Napi::Value& value, const char* what, DType dtype) {
    const BufferView buffer = terse::buffer_of(value, what);
    if (buffer.dtype != dtype)
        throw Napi::TypeError::New(value.Env(), std::string(what) + ": expected " + terse::name_of(dtype) + ", got " +
                                                    terse::name_of(buffer.dtype));
    if (!buffer.on_cpu)
        throw Napi::TypeError::New(value.Env(), std::string(what) +
                                                    ": is on another device than the CPU, where this kernel runs; move "
                                                    "all arrays of the call to one device");
    return buffer;
}

[[noreturn]] inline void throw_length(Napi::Env env, const char* what, size_t got, size_t expected, const char* unit) {
    throw Napi::RangeError::New(env, std::string(what) + ": expected " + std::to_string(expected) + " " + unit +
                                         ", got " + std::to_string(got));
}

// The first array of a call: sets n, the length that all others must have.
inline float* first_floats_of(const Napi::Value& value, const char* what, size_t& n) {
    const BufferView buffer = buffer_of(value, what, DType::f32);
    n = buffer.length;
    return static_cast<float*>(buffer.data);
}

inline float* floats_of(const Napi::Value& value, const char* what, size_t n) {
    const BufferView buffer = buffer_of(value, what, DType::f32);
    if (buffer.length != n) throw_length(value.Env(), what, buffer.length, n, "floats, as many as the first array has");
    return static_cast<float*>(buffer.data);
}

inline uint8_t* packed_signs_of(const Napi::Value& value, const char* what, size_t n) {
    const BufferView buffer = buffer_of(value, what, DType::u8);
    const size_t bytes = n / 8 + (n % 8 != 0);
    if (buffer.length != bytes) throw_length(value.Env(), what, buffer.length, bytes, "bytes, one bit per float");
    return static_cast<uint8_t*>(buffer.data);
}

inline Napi::Object options_of(const Napi::CallbackInfo& info, size_t i) {
    if (!info[i].IsObject()) throw Napi::TypeError::New(info.Env(), "options: expected an object");
    return info[i].As<Napi::Object>();
}

// Kernels compute in fp32, so a number must be finite there: 1e39 is not.
inline double number_of(const Napi::Object& options, const char* name) {
    const Napi::Value value = options.Get(name);
    if (!value.IsNumber() || !std::isfinite(static_cast<float>(value.As<Napi::Number>().DoubleValue())))
        throw Napi::TypeError::New(options.Env(),
                                   std::string(name) + ": expected a number that is finite as a 32-bit float");
    return value.As<Napi::Number>().DoubleValue();
}

inline terse_lion_zero zero_of(const Napi::Object& options, bool can_hold) {
    const Napi::Value value = options.Get("zero");
    const std::string name = value.IsString() ? value.As<Napi::String>().Utf8Value() : "";
    if (name == "plus") return TERSE_LION_PLUS;
    if (name == "minus") return TERSE_LION_MINUS;
    if (name == "hold" && can_hold) return TERSE_LION_HOLD;
    throw Napi::TypeError::New(options.Env(), can_hold ? "zero: expected \"plus\", \"minus\" or \"hold\""
                                                       : "zero: expected \"plus\" or \"minus\"");
}

inline float gradient_scale_of(const Napi::Object& options) {
    return options.Get("gradientScale").IsUndefined() ? 1.0f : static_cast<float>(number_of(options, "gradientScale"));
}

inline terse_lion_options lion_vote_options_of(const Napi::Object& given) {
    return {0, number_of(given, "beta1"), number_of(given, "beta2"),
            0, zero_of(given, false),     gradient_scale_of(given)};
}

inline terse_lion_options lion_mix_options_of(const Napi::Object& given) {
    return {0, number_of(given, "beta1"), number_of(given, "beta2"), 0, TERSE_LION_PLUS, gradient_scale_of(given)};
}

inline terse_lion_options lion_step_options_of(const Napi::Object& given) {
    return {number_of(given, "lr"),          number_of(given, "beta1"), number_of(given, "beta2"),
            number_of(given, "weightDecay"), zero_of(given, true),      gradient_scale_of(given)};
}

inline terse_adamw_options adamw_options_of(const Napi::Object& given) {
    const double step = number_of(given, "step");
    if (!(step >= 1 && step <= 9007199254740991.0) || step != std::floor(step))
        throw Napi::RangeError::New(given.Env(), "step: expected an integer, 1 for the first update");
    return {number_of(given, "lr"),  number_of(given, "beta1"),       number_of(given, "beta2"),
            number_of(given, "eps"), number_of(given, "weightDecay"), static_cast<uint64_t>(step),
            gradient_scale_of(given)};
}

inline terse_sgd_options sgd_options_of(const Napi::Object& given) {
    return {number_of(given, "lr"),          number_of(given, "momentum"), number_of(given, "dampening"),
            number_of(given, "weightDecay"), gradient_scale_of(given),     given.Get("nesterov").ToBoolean(),
            given.Get("first").ToBoolean()};
}

inline terse_moments_options moments_options_of(const Napi::Object& given) {
    return {number_of(given, "beta1"), number_of(given, "beta2"), gradient_scale_of(given)};
}

inline terse_adam_update adam_update_of(const Napi::Object& given) {
    return {number_of(given, "first"), number_of(given, "second"), number_of(given, "eps"),
            number_of(given, "weightDecay")};
}

inline terse_refresh_options refresh_options_of(const Napi::Object& given) {
    return {number_of(given, "beta1"), number_of(given, "beta2"), number_of(given, "eps"),
            given.Get("root").ToBoolean()};
}

// The mask of elements that send nothing; NULL where there is none.
inline const uint8_t* hold_of(const Napi::Object& given, size_t n) {
    const Napi::Value hold = given.Get("hold");
    return hold.IsUndefined() ? nullptr : packed_signs_of(hold, "hold", n);
}

inline bool is_packed(const Napi::Value& value) { return value.IsObject() && value.As<Napi::Object>().Has("signs"); }

// A packed momentum, if the value is not undefined.
struct PackedMomentum {
    const bool given;
    terse_packed_momentum whole = {nullptr, nullptr, 0};
    PackedMomentum(const Napi::Value& value, size_t n) : given(!value.IsUndefined()) {
        if (!given) return;
        if (!is_packed(value)) throw Napi::TypeError::New(value.Env(), "packed: expected signs and their scale");
        const Napi::Object fields = value.As<Napi::Object>();
        whole = {packed_signs_of(fields.Get("signs"), "signs", n), hold_of(fields, n),
                 static_cast<float>(number_of(fields, "scale"))};
    }
    // The same from element i on, a multiple of 8.
    terse_packed_momentum from(size_t i) const {
        return {whole.signs ? whole.signs + i / 8 : nullptr, whole.hold ? whole.hold + i / 8 : nullptr, whole.scale};
    }
};

// The rows of a matrix with r columns.
inline size_t rows_of(Napi::Env env, const char* what, size_t floats, size_t r) {
    if (floats % r != 0)
        throw Napi::RangeError::New(
            env, std::string(what) + ": " + std::to_string(floats) + " floats are no rows of " + std::to_string(r));
    return floats / r;
}

inline size_t rank_of(const Napi::Object& options) {
    const double rank = number_of(options, "rank");
    if (!(rank >= 1 && rank <= 4294967295.0) || rank != std::floor(rank))
        throw Napi::RangeError::New(options.Env(), "rank: expected an integer >= 1");
    return static_cast<size_t>(rank);
}

inline Napi::Array two_numbers(Napi::Env env, const double* numbers) {
    Napi::Array both = Napi::Array::New(env, 2);
    for (uint32_t k = 0; k < 2; k++) both[k] = Napi::Number::New(env, numbers[k]);
    return both;
}

// theta = theta keep + scale (...)
struct Change {
    float keep, scale;
    explicit Change(const Napi::Object& given)
        : keep(static_cast<float>(number_of(given, "keep"))), scale(static_cast<float>(number_of(given, "scale"))) {}
};

inline double ranks_of(const Napi::Value& value) {
    const double ranks = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : 0;
    if (!(ranks >= 1 && ranks <= double{TERSE_TALLY_MAX_RANKS}) || ranks != std::floor(ranks))
        throw Napi::RangeError::New(value.Env(), terse_optimizer_sentence(TERSE_OPTIMIZER_BAD_RANKS));
    return ranks;
}

inline std::vector<const uint8_t*> planes_of(const Napi::Value& value, double ranks, size_t n) {
    if (!value.IsArray()) throw Napi::TypeError::New(value.Env(), "planes: expected an array of Uint8Array");
    const auto array = value.As<Napi::Array>();
    std::vector<const uint8_t*> planes;
    for (uint32_t k = 0; k < array.Length(); k++)
        planes.push_back(packed_signs_of(array.Get(k), ("planes[" + std::to_string(k) + "]").c_str(), n));
    size_t needed = 0;
    for (auto left = static_cast<unsigned>(ranks); left; left >>= 1) needed++;
    if (planes.size() != needed)
        throw_length(value.Env(), "planes", planes.size(), needed, "planes, one per bit of ranks");
    return planes;
}
