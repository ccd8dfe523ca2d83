// BufferView from a JavaScript BufferLike: a typed array, or an object with pointer, length, dtype and device.
#pragma once
#include <napi.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "terse/buffer_view.h"

namespace terse {

// Index of a CUDA device by its name: "cuda" is 0, "cuda:1" is 1. -1 for any other name.
inline int cuda_device_of(const std::string& device) {
    if (device.rfind("cuda", 0) != 0) return -1;
    if (device.size() == 4) return 0;
    const bool digits = device[4] == ':' && device.size() > 5 && device.size() < 9 &&
                        device.find_first_not_of("0123456789", 5) == std::string::npos;
    return digits ? std::stoi(device.substr(5)) : -1;
}

// `what` is the argument's name. Throws a TypeError that starts with it where the value is not a BufferLike.
inline BufferView buffer_of(const Napi::Value& value, const char* what) {
    const Napi::Env env = value.Env();
    if (value.IsTypedArray()) {
        // By the typed array: before Node 24, Node-API gives no address for a SharedArrayBuffer.
        napi_typedarray_type kind;
        size_t length;
        void* data;
        const napi_status status = napi_get_typedarray_info(env, value, &kind, &length, &data, nullptr, nullptr);
        if (status != napi_ok) throw Napi::Error::New(env);
        DType type;
        switch (kind) {
            case napi_uint8_array:
            case napi_uint8_clamped_array: type = DType::u8; break;
            case napi_int8_array: type = DType::i8; break;
            case napi_int16_array:
            case napi_uint16_array: type = DType::i16; break;
            case napi_int32_array:
            case napi_uint32_array: type = DType::i32; break;
            case napi_bigint64_array:
            case napi_biguint64_array: type = DType::i64; break;
            case napi_float32_array: type = DType::f32; break;
            case napi_float64_array: type = DType::f64; break;
            default: throw Napi::TypeError::New(env, std::string(what) + ": this kind of typed array is not supported");
        }
        return {data, length, type, true};
    }
    if (value.IsObject()) {
        const auto object = value.As<Napi::Object>();
        const Napi::Value pointer = object.Get("pointer"), length = object.Get("length"), dtype = object.Get("dtype"),
                          device = object.Get("device");
        if (pointer.IsBigInt() && length.IsNumber() && dtype.IsString()) {
            bool lossless = false;
            const uint64_t address = pointer.As<Napi::BigInt>().Uint64Value(&lossless);
            const double count = length.As<Napi::Number>().DoubleValue();
            if (!(count >= 0 && count <= 0x1p48) || count != std::floor(count))
                throw Napi::RangeError::New(
                    env,
                    std::string(what) + ": the length of memory behind a pointer must be a whole number, 0 or more");
            if (count > 0 && (address == 0 || !lossless))
                throw Napi::RangeError::New(env, std::string(what) + ": the pointer is not an address");
            const std::string type = dtype.As<Napi::String>(),
                              on = device.IsString() ? device.As<Napi::String>().Utf8Value() : "cpu";
            for (int i = 0; i <= static_cast<int>(DType::boolean); i++)
                if (type == name_of(static_cast<DType>(i)))
                    return {reinterpret_cast<void*>(address), static_cast<size_t>(count), static_cast<DType>(i),
                            on == "cpu", cuda_device_of(on)};
            throw Napi::TypeError::New(env, std::string(what) + ": unknown dtype " + type +
                                                "; known: u8, i8, i16, i32, i64, f16, bf16, f32, f64, bool");
        }
    }
    throw Napi::TypeError::New(
        env, std::string(what) + ": expected a typed array, or an object with pointer, length, dtype and device");
}

// Floats on a CUDA device: the first ones of a call, which set n and the device that all others must share.
inline float* device_floats_of(const Napi::Value& value, const char* what, size_t& n, int& device) {
    const BufferView memory = buffer_of(value, what);
    if (memory.dtype != DType::f32)
        throw Napi::TypeError::New(value.Env(), std::string(what) + ": expected f32, got " + name_of(memory.dtype));
    if (memory.cuda < 0)
        throw Napi::TypeError::New(
            value.Env(),
            std::string(what) + ": is not on a GPU, where this kernel runs; move all arrays of the call to one device");
    n = memory.length, device = memory.cuda;
    return static_cast<float*>(memory.data);
}

}  // namespace terse
