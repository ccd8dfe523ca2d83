#include "../../shared/fields/fields_avx2.h"
#include "count.h"
#include "terse/walk.h"

typedef struct encoding {
    uint8_t *fields;
    const float *x;
    terse_packing_avx2 packing;
    __m256 s, zero_is_plus, bad;  // bad: SIMD lanes with a number that cannot be written
} encoding;

// 1 where plus: as numbers, -1 (a full mask) or 0, negated when all are bytes.
static inline __m256i sign_8(encoding *e, size_t i) {
    const __m256 x = _mm256_loadu_ps(e->x + i);
    e->bad = _mm256_or_ps(e->bad, _mm256_sub_ps(x, x));
    const __m256 zero = _mm256_setzero_ps(), is_zero = _mm256_and_ps(_mm256_cmp_ps(x, zero, _CMP_EQ_OQ), e->zero_is_plus);
    return _mm256_castps_si256(_mm256_or_ps(_mm256_cmp_ps(x, zero, _CMP_GT_OQ), is_zero));
}

static inline __m256i level_8(encoding *e, size_t i) {
    const __m256 x = _mm256_loadu_ps(e->x + i);
    const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x), whole = _mm256_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __m256 fits = _mm256_and_ps(_mm256_cmp_ps(magnitude, e->s, _CMP_LE_OQ), _mm256_cmp_ps(x, whole, _CMP_EQ_OQ));
    e->bad = _mm256_or_ps(e->bad, _mm256_andnot_ps(fits, _mm256_castsi256_ps(_mm256_set1_epi32(-1))));
    return _mm256_cvttps_epi32(_mm256_add_ps(x, e->s));
}

TERSE_ROUND_FUNCTION sign_round(void *context, size_t i) {
    encoding *e = context;
    terse_prefetch(e->x + i + TERSE_WALK_GROUP);
    const __m256i a = terse_bytes_avx2(sign_8(e, i), sign_8(e, i + 8), sign_8(e, i + 16), sign_8(e, i + 24));
    const __m256i b = terse_bytes_avx2(sign_8(e, i + 32), sign_8(e, i + 40), sign_8(e, i + 48), sign_8(e, i + 56));
    const __m256i zero = _mm256_setzero_si256();
    terse_pack_64_avx2(&e->packing, e->fields, i, _mm256_sub_epi8(zero, a), _mm256_sub_epi8(zero, b));
}

// From 0 to 254: saturated to unsigned bytes.
static inline __m256i unsigned_bytes(__m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i mixed = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    return _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

TERSE_ROUND_FUNCTION level_round(void *context, size_t i) {
    encoding *e = context;
    terse_prefetch(e->x + i + TERSE_WALK_GROUP);
    const __m256i a = unsigned_bytes(level_8(e, i), level_8(e, i + 8), level_8(e, i + 16), level_8(e, i + 24));
    const __m256i b = unsigned_bytes(level_8(e, i + 32), level_8(e, i + 40), level_8(e, i + 48), level_8(e, i + 56));
    terse_pack_64_avx2(&e->packing, e->fields, i, a, b);
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    const unsigned bits = terse_field_bits(o), width = terse_field_width(o);
    encoding e = {
        wire + begin / 8 * width, x + begin, terse_packing_avx2_of(width), _mm256_set1_ps((float)((1 << (bits - 1)) - 1)),
        _mm256_castsi256_ps(_mm256_set1_epi32(o->zero == TERSE_ZERO_PLUS ? -1 : 0)), _mm256_setzero_ps(),
    };
    const size_t done = begin + (bits == 1 ? terse_walk(end - begin, sign_round, &e) : terse_walk(end - begin, level_round, &e));
    const __m256i bad = _mm256_castps_si256(e.bad);
    // A number that does not fit: the scalar code finds the first one.
    return terse_count_encode_scalar(wire, x, n, o, _mm256_testz_si256(bad, bad) ? done : begin, end);
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    const terse_field_meaning meaning = terse_count_meaning(o);
    terse_fields_add_avx2(sum, wire, n, &meaning, o->scale, begin, end);
    return TERSE_CODEC_OK;
}

const terse_codec terse_count_avx2 = {
    .name = "count", .implementation = "avx2", .takes = TERSE_COUNT_TAKES, .check = terse_count_check,
    .wire_bytes = terse_count_wire_bytes, .encode = encode, .decode_add = decode_add,
};
