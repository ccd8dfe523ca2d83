// count on a GPU: field = 1 where plus, or x + s where x is whole. x (n) -> fields (n).
#include "count.h"
#include "shared/fields/fields.cuh"

struct count_writing {
    static constexpr bool DRAWS = false;
    float s, least;  // of one bit s is 0; then a number is plus from `least` on

    __device__ double factor(float) const { return 0; }
    __device__ bool refuses(float x) const {
        return s == 0 ? magnitude_bits(x) >= INFINITE : !(x >= -s && x <= s) || (float)(int)x != x;
    }
    __device__ unsigned zero() const { return 0; }
    __device__ unsigned field(float x, double, unsigned) const { return s == 0 ? x >= least : (unsigned)(int)(x + s); }
};

static scaled of_all(size_t n) { return {{n, 1, n, nullptr}, nullptr}; }

static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *,
                                 uint64_t *bad, void *stream) {
    const count_writing w = {(float)((1 << (terse_field_bits(o) - 1)) - 1),
                             o->zero == TERSE_ZERO_PLUS ? 0.0f : 0x1p-149f};
    return launch_write_fields(wire, x, n, terse_field_width(o), of_all(n), o, w, bad, stream);
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o, void *,
                                     uint64_t *bad, void *stream) {
    const unsigned bits = terse_field_bits(o);
    const double ranks = terse_field_ranks(o);
    const linear_reading r = bits == 1 ? linear_reading{UINT16_MAX, ranks / 2, 2.0, 1.0}
                                       : linear_reading{UINT16_MAX, ranks * ((1 << (bits - 1)) - 1), 1.0, 1.0};
    return launch_read_fields(sum, wire, n, terse_field_width(o), of_all(n), o, r, bad, stream);
}

extern const terse_codec_cuda terse_count_cuda;
const terse_codec_cuda terse_count_cuda = {&terse_count_scalar, nullptr, encode, decode_add};
