// A view of contiguous memory, which it does not own. napi_buffer.h makes one from a JavaScript value.
#pragma once
#include <cstddef>
#include <cstdint>

namespace terse {

enum class DType { u8, i8, i16, i32, i64, f16, bf16, f32, f64, boolean };

inline const char* name_of(DType type) {
    static const char* names[] = {"u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "bool"};
    return names[static_cast<int>(type)];
}

inline size_t bytes_of(DType type) {
    static const size_t bytes[] = {1, 1, 2, 4, 8, 2, 2, 4, 8, 1};
    return bytes[static_cast<int>(type)];
}

struct BufferView {
    void* data;
    size_t length;  // elements
    DType dtype;
    bool on_cpu;
    int cuda = -1;  // index of its CUDA device; -1: not on a CUDA device

    size_t bytes() const { return length * bytes_of(dtype); }
};

}  // namespace terse
