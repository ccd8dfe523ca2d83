#include "elements.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace {

float of_half(uint16_t half) {
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                       : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                      : std::ldexp(fraction, -24);
    return half >> 15 ? -size : size;
}
uint16_t to_half(float x) {
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const float size = std::fabs(x);
    if (!(size < 65520)) return sign | (std::isnan(x) ? 0x7e00 : 0x7c00);
    if (size < std::ldexp(1, -14)) return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(size, 24)));
    int exponent;
    std::frexp(size, &exponent);
    const auto fraction = static_cast<int>(std::nearbyint(std::ldexp(size, 11 - exponent)));
    return static_cast<uint16_t>(sign + ((exponent + 13) << 10) + fraction);
}
struct Half {
    uint16_t bits;
    operator float() const { return of_half(bits); }
    Half& operator=(float x) { return bits = to_half(x), *this; }
};
struct Brain {
    uint16_t bits;
    operator float() const {
        const uint32_t wide = uint32_t{bits} << 16;
        float x;
        std::memcpy(&x, &wide, 4);
        return x;
    }
    Brain& operator=(float x) {
        uint32_t wide;
        std::memcpy(&wide, &x, 4);
        bits = static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
        return *this;
    }
};

// As in the real NCCL, the average of floats multiplies by 1/n first: it rounds differently from the sum ÷ n.
template <typename T, typename Wide>
void reduce(std::vector<const void*> from, void* to, size_t count, int op) {
    const auto at = [&](size_t rank, size_t i) {
        T x;
        std::memcpy(&x, static_cast<const char*>(from[rank]) + i * sizeof(T), sizeof(T));
        return x;
    };
    const size_t n = from.size();
    const bool floats = !std::is_integral_v<T>;
    for (size_t i = 0; i < count; i++) {
        T sum = at(0, i);
        const auto scaled = [&](T x) {
            if (op == 4 && floats) x = static_cast<Wide>(x) * (static_cast<Wide>(1) / static_cast<Wide>(n));
            return x;
        };
        sum = scaled(sum);
        for (size_t rank = 1; rank < n; rank++) {
            const Wide a = sum, b = scaled(at(rank, i));
            sum = op == 1 ? a * b : op == 2 ? std::max(a, b) : op == 3 ? std::min(a, b) : a + b;
        }
        if (op == 4 && !floats) sum = static_cast<Wide>(sum) / static_cast<Wide>(n);
        std::memcpy(static_cast<char*>(to) + i * sizeof(T), &sum, sizeof(T));
    }
}

}  // namespace

size_t size_of(int type) {
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return type >= 0 && type < 10 ? sizes[type] : 0;
}

void reduce(int type, std::vector<const void*> from, void* to, size_t count, int op) {
    switch (type) {
        case 0: return reduce<int8_t, int>(from, to, count, op);
        case 1: return reduce<uint8_t, unsigned>(from, to, count, op);
        case 2: return reduce<int32_t, int64_t>(from, to, count, op);
        case 3: return reduce<uint32_t, uint64_t>(from, to, count, op);
        case 4: return reduce<int64_t, int64_t>(from, to, count, op);
        case 5: return reduce<uint64_t, uint64_t>(from, to, count, op);
        case 6: return reduce<Half, float>(from, to, count, op);
        case 7: return reduce<float, float>(from, to, count, op);
        case 8: return reduce<double, double>(from, to, count, op);
        case 9: return reduce<Brain, float>(from, to, count, op);
    }
}
