#include "algorithms/reduce.h"

#include <bit>
#include <cstdint>
#include <type_traits>

namespace terse::collectives {
namespace {

// Formats that are stored in 16 bits and computed in f32.
struct Half {
    uint16_t bits;
};
struct Brain {
    uint16_t bits;
};

float widen(Brain x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

Brain narrow_brain(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);  // to nearest, ties to even
    return {static_cast<uint16_t>(x != x ? (bits >> 16) | 0x40 : rounded >> 16)};
}

float widen(Half x) {
    // After the shift the exponent is 112 too small. The product corrects it, for subnormals too. Infinity and NaN are
    // handled below.
    const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fff) << 13;
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
    const uint32_t special = magnitude | 0x7f800000;
    const uint32_t bits = magnitude >= (0x7c00u << 13) ? special : std::bit_cast<uint32_t>(scaled);
    return std::bit_cast<float>(bits | static_cast<uint32_t>(x.bits & 0x8000) << 16);
}

Half narrow_half(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffff;
    const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
    if (magnitude > 0x7f800000) return {static_cast<uint16_t>(sign | 0x7e00)};
    if (magnitude >= 0x477ff000) return {static_cast<uint16_t>(sign | 0x7c00)};  // from 65520 on: infinity
    if (magnitude < 0x38800000) {                                                // below 2^-14: steps of 2^-24
        const float shifted = std::bit_cast<float>(magnitude) + 0x1p-1f;         // one unit of 0.5 in f32 is 2^-24
        return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000))};
    }
    const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
    return {static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13))};
}

template <class T>
struct Format {  // reads and writes a stored T
    using Value = T;
    static Value read(T x) { return x; }
    static T write(Value x) { return x; }
};
template <>
struct Format<Half> {
    using Value = float;
    static float read(Half x) { return widen(x); }
    static Half write(float x) { return narrow_half(x); }
};
template <>
struct Format<Brain> {
    using Value = float;
    static float read(Brain x) { return widen(x); }
    static Brain write(float x) { return narrow_brain(x); }
};

// Integers are added and multiplied as unsigned numbers of at least 32 bits: the same bits, without undefined overflow.
template <class T, bool integer = std::is_integral_v<T>>
struct Wrapping {
    using type = T;
};
template <class T>
struct Wrapping<T, true> {
    using type = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
};

struct Sum {
    template <class T>
    static T of(T a, T b) {
        using W = typename Wrapping<T>::type;
        return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
    }
};
struct Prod {
    template <class T>
    static T of(T a, T b) {
        using W = typename Wrapping<T>::type;
        return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
    }
};
struct Min {
    template <class T>
    static T of(T a, T b) {
        return a < b || a != a ? a : b;
    }
};
struct Max {
    template <class T>
    static T of(T a, T b) {
        return a > b || a != a ? a : b;
    }
};

template <class Op, class T>
void reduce(void* into, const void* from, size_t count) {
    T* __restrict a = static_cast<T*>(into);
    const T* __restrict b = static_cast<const T*>(from);
    for (size_t i = 0; i < count; i++) a[i] = Format<T>::write(Op::of(Format<T>::read(a[i]), Format<T>::read(b[i])));
}

template <class T>
void divide(void* x, size_t count, int ranks) {
    T* values = static_cast<T*>(x);
    const auto n = static_cast<typename Format<T>::Value>(ranks);
    for (size_t i = 0; i < count; i++) values[i] = Format<T>::write(Format<T>::read(values[i]) / n);
}

bool is_float(DType dtype) {
    return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

template <class Op>
Reduce find(DType dtype) {
    switch (dtype) {
        case DType::u8: return reduce<Op, uint8_t>;
        case DType::i8: return reduce<Op, int8_t>;
        case DType::i16: return reduce<Op, int16_t>;
        case DType::i32: return reduce<Op, int32_t>;
        case DType::i64: return reduce<Op, int64_t>;
        case DType::f16: return reduce<Op, Half>;
        case DType::bf16: return reduce<Op, Brain>;
        case DType::f32: return reduce<Op, float>;
        case DType::f64: return reduce<Op, double>;
        case DType::boolean: return nullptr;
    }
    return nullptr;
}

}  // namespace

Reduce find_reduce(Reduction reduction, DType dtype) {
    switch (reduction) {
        case Reduction::sum: return find<Sum>(dtype);
        case Reduction::prod: return find<Prod>(dtype);
        case Reduction::min: return find<Min>(dtype);
        case Reduction::max: return find<Max>(dtype);
        case Reduction::mean: return is_float(dtype) ? find<Sum>(dtype) : nullptr;
    }
    return nullptr;
}

void complete(Reduction reduction, DType dtype, void* x, size_t count, int ranks) {
    if (reduction != Reduction::mean) return;
    if (dtype == DType::f16) divide<Half>(x, count, ranks);
    if (dtype == DType::bf16) divide<Brain>(x, count, ranks);
    if (dtype == DType::f32) divide<float>(x, count, ranks);
    if (dtype == DType::f64) divide<double>(x, count, ranks);
}

size_t average(float* into, const float* const* parts, size_t ranks, size_t count) {
    constexpr size_t block = 512;
    constexpr uint32_t exponent = 0x7f800000;  // of NaN and infinities
    const auto divisor = static_cast<double>(ranks);
    const bool divides_exactly = (ranks & (ranks - 1)) == 0;  // then a product with 1 / ranks has the same bits, and is
                                                              // faster
    size_t finite = count;
    for (size_t at = 0; at < count; at += block) {
        const size_t n = count - at < block ? count - at : block;
        float* const here = into + at;
        if (ranks == 1) {
            for (size_t i = 0; i < n; i++)
                here[i] = parts[0][at + i] + 0.0f;  // -0 becomes 0, as in a sum that begins with 0
        } else {
            double sum[block] = {0};
            for (size_t r = 0; r < ranks; r++)
                for (size_t i = 0; i < n; i++) sum[i] += parts[r][at + i];
            if (divides_exactly)
                for (size_t i = 0; i < n; i++) here[i] = static_cast<float>(sum[i] * (1 / divisor));
            else
                for (size_t i = 0; i < n; i++) here[i] = static_cast<float>(sum[i] / divisor);
        }
        uint32_t bad = 0;
        for (size_t i = 0; i < n; i++) bad |= (std::bit_cast<uint32_t>(here[i]) & exponent) == exponent;
        for (size_t i = 0; bad && i < n && finite == count; i++)
            if ((std::bit_cast<uint32_t>(here[i]) & exponent) == exponent) finite = at + i;
    }
    return finite;
}

}  // namespace terse::collectives
