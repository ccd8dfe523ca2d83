#include "../../shared/fields/fields_avx512.h"
#include "count.h"
#include "terse/walk.h"

typedef struct encoding {
    uint8_t *fields;
    const float *x;
    terse_packing_avx512 packing;
    __m512 s;
    __mmask16 zero_is_plus, bad;  // bad: SIMD lanes with a number that cannot be written
} encoding;

// FPCLASS: quiet NaN, both infinities, signalling NaN.
enum { NOT_FINITE = 0x01 | 0x08 | 0x10 | 0x80 };

static inline __mmask16 sign_16(encoding *e, size_t i) {
    const __m512 x = _mm512_loadu_ps(e->x + i), zero = _mm512_setzero_ps();
    e->bad |= _mm512_fpclass_ps_mask(x, NOT_FINITE);
    return _mm512_cmp_ps_mask(x, zero, _CMP_GT_OQ) | (_mm512_cmp_ps_mask(x, zero, _CMP_EQ_OQ) & e->zero_is_plus);
}

static inline __m128i level_16(encoding *e, size_t i) {
    const __m512 x = _mm512_loadu_ps(e->x + i), whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    e->bad |= (__mmask16)~(_mm512_cmp_ps_mask(_mm512_abs_ps(x), e->s, _CMP_LE_OQ) & _mm512_cmp_ps_mask(x, whole, _CMP_EQ_OQ));
    return _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(_mm512_add_ps(x, e->s)));
}

TERSE_ROUND_FUNCTION sign_round(void *context, size_t i) {
    encoding *e = context;
    terse_prefetch(e->x + i + TERSE_WALK_GROUP);
    const __mmask64 plus = (uint64_t)sign_16(e, i) | (uint64_t)sign_16(e, i + 16) << 16 | (uint64_t)sign_16(e, i + 32) << 32 | (uint64_t)sign_16(e, i + 48) << 48;
    terse_pack_64_avx512(&e->packing, e->fields, i, _mm512_maskz_mov_epi8(plus, _mm512_set1_epi8(1)));
}

TERSE_ROUND_FUNCTION level_round(void *context, size_t i) {
    encoding *e = context;
    terse_prefetch(e->x + i + TERSE_WALK_GROUP);
    __m512i levels = _mm512_castsi128_si512(level_16(e, i));
    levels = _mm512_inserti32x4(levels, level_16(e, i + 16), 1);
    levels = _mm512_inserti32x4(levels, level_16(e, i + 32), 2);
    levels = _mm512_inserti32x4(levels, level_16(e, i + 48), 3);
    terse_pack_64_avx512(&e->packing, e->fields, i, levels);
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    const unsigned bits = terse_field_bits(o), width = terse_field_width(o);
    encoding e = {
        wire + begin / 8 * width, x + begin, terse_packing_avx512_of(width), _mm512_set1_ps((float)((1 << (bits - 1)) - 1)),
        o->zero == TERSE_ZERO_PLUS ? 0xffff : 0, 0,
    };
    const size_t done = begin + (bits == 1 ? terse_walk(end - begin, sign_round, &e) : terse_walk(end - begin, level_round, &e));
    // A number that does not fit: the scalar code finds the first one.
    return terse_count_encode_scalar(wire, x, n, o, e.bad ? begin : done, end);
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    const terse_field_meaning meaning = terse_count_meaning(o);
    terse_fields_add_avx512(sum, wire, n, &meaning, o->scale, begin, end);
    return TERSE_CODEC_OK;
}

const terse_codec terse_count_avx512 = {
    .name = "count", .implementation = "avx512", .takes = TERSE_COUNT_TAKES, .check = terse_count_check,
    .wire_bytes = terse_count_wire_bytes, .encode = encode, .decode_add = decode_add,
};
