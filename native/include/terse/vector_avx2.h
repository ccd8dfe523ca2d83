// AVX2's words: terse/vector.h says what they mean.
#ifndef TERSE_VECTOR_AVX2_H
#define TERSE_VECTOR_AVX2_H
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define INSTRUCTIONS avx2
enum { LANES = 8 };

typedef __m256 vec;
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define SPLAT _mm256_set1_ps
#define ABS(x) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x)
#define SQRT _mm256_sqrt_ps
#define FMA _mm256_fmadd_ps
#define LIMIT(x, most) _mm256_min_ps(_mm256_max_ps(x, -(most)), most)
#define LOAD_F16(from) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from)))
#define STORE_F16(to, x) _mm_storeu_si128((__m128i *)(to), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT))
static inline vec TABLE(const float *four) {
    const __m128 half = _mm_loadu_ps(four);
    return _mm256_set_m128(half, half);
}
#define LOOK_UP(table, which) _mm256_permutevar_ps(table, (__m256i)(which))
typedef __m256 eight_floats;
#define EIGHT_FLOATS _mm256_loadu_ps
#define LOOK_UP_8(eight, which) _mm256_permutevar8x32_ps(eight, (__m256i)(which))

typedef int32_t ints __attribute__((vector_size(32)));
#define SPLAT_INTS(value) ((ints)_mm256_set1_epi32(value))
#define MOST_INTS(a, b) ((ints)_mm256_max_epi32((__m256i)(a), (__m256i)(b)))
#define LEAST_INTS(a, b) ((ints)_mm256_min_epi32((__m256i)(a), (__m256i)(b)))
static inline int LARGEST_INT(ints x) {
    int most = x[0];
    for (int lane = 1; lane < 8; lane++) most = x[lane] > most ? x[lane] : most;
    return most;
}
#define ROUND(x) ((ints)_mm256_cvtps_epi32(x))
#define LOAD_INT8(from) ((ints)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(from))))
static inline void STORE_INT8(uint8_t *to, ints x) {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)x), _mm256_extracti128_si256((__m256i)x, 1));
    _mm_storel_epi64((__m128i *)to, _mm_packs_epi16(words, words));
}
#define LOAD_UINT16(from) ((ints)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(from))))
#define STORE_UINT16(to, x)                                                                  \
    _mm_storeu_si128((__m128i *)(to), _mm_packus_epi32(_mm256_castsi256_si128((__m256i)(x)), \
                                                       _mm256_extracti128_si256((__m256i)(x), 1)))
#define ANY(x) (!_mm256_testz_si256((__m256i)(x), (__m256i)(x)))

typedef __m256 mask;
#define ABOVE(a, b) _mm256_cmp_ps(a, b, _CMP_GT_OQ)
#define NOT_BELOW(a, b) _mm256_cmp_ps(a, b, _CMP_GE_OQ)
#define EQUAL(a, b) _mm256_cmp_ps(a, b, _CMP_EQ_OQ)
#define INTS_ABOVE(a, b) ((mask)_mm256_cmpgt_epi32((__m256i)(a), (__m256i)(b)))
#define BUT_NOT(m, n) _mm256_andnot_ps(n, m)
#define COUNT(m, x) ((x) - (ints)(m))
#define CHOOSE(m, yes, no) _mm256_blendv_ps(no, yes, m)
#define ADD_WHERE(m, a, b) CHOOSE(m, (a) + (b), a)

static inline __attribute__((always_inline)) uint64_t WORD(const mask lanes[8]) {
    uint64_t word = 0;
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) word |= (uint64_t)(unsigned)_mm256_movemask_ps(lanes[k]) << 8 * k;
    return word;
}

// A lane's bit is at its top, where a float has its sign.
static inline __attribute__((always_inline)) mask LANES_OF(uint64_t word, size_t k) {
    const __m256i to_top = _mm256_sub_epi32(_mm256_set1_epi32(31 - 8 * (int)(k % 4)),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_castsi256_ps(_mm256_sllv_epi32(_mm256_set1_epi32((int)(word >> 32 * (k / 4))), to_top));
}

typedef __m256d wide;
#define SPLAT_WIDE _mm256_set1_pd
#define LOAD_WIDE(from) _mm256_cvtps_pd(_mm_loadu_ps(from))
#define STORE_WIDE _mm256_storeu_pd
#define WIDE_ABS(x) _mm256_andnot_pd(_mm256_set1_pd(-0.0), x)
#define WIDE_LIMIT(x, most) _mm256_min_pd(WIDE_ABS(x), most)
#define LOWER(x) _mm256_cvtps_pd(_mm256_castps256_ps128(x))
#define UPPER(x) _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))
#define LOWER_INTS(x) _mm256_cvtepi32_pd(_mm256_castsi256_si128((__m256i)(x)))
#define UPPER_INTS(x) _mm256_cvtepi32_pd(_mm256_extracti128_si256((__m256i)(x), 1))
#define NARROW(lower, upper) _mm256_set_m128(_mm256_cvtpd_ps(upper), _mm256_cvtpd_ps(lower))
#define ROUND_WIDE(lower, upper) ((ints)_mm256_set_m128i(_mm256_cvtpd_epi32(upper), _mm256_cvtpd_epi32(lower)))
#define TRUNCATE_WIDE(lower, upper) ((ints)_mm256_set_m128i(_mm256_cvttpd_epi32(upper), _mm256_cvttpd_epi32(lower)))

typedef __m256d wide_mask;
#define WIDE_BELOW(a, b) _mm256_cmp_pd(a, b, _CMP_LT_OQ)
#define WIDE_CHOOSE(m, yes, no) _mm256_blendv_pd(no, yes, m)
#define WIDE_ABOVE(a, b, lower, upper) \
    ((mask)LOWER_BITS(_mm256_cmp_pd(a, lower, _CMP_GT_OQ), _mm256_cmp_pd(b, upper, _CMP_GT_OQ)))
#define LOWER_BITS(lower, upper) TERSE_BITS(lower, upper, 0x88)
#define UPPER_BITS(lower, upper) TERSE_BITS(lower, upper, 0xDD)
#define TERSE_BITS(lower, upper, which) \
    ((ints)_mm256_permute4x64_epi64((__m256i)_mm256_shuffle_ps((__m256)(lower), (__m256)(upper), which), 0xD8))
typedef uint64_t longs __attribute__((vector_size(32)));
#define CEIL(x) ((longs)_mm256_add_pd(_mm256_ceil_pd(x), _mm256_set1_pd(0x1p52)) ^ (longs)_mm256_set1_pd(0x1p52))
#define MULTIPLY(a, by) ((longs)_mm256_mul_epu32((__m256i)(a), _mm256_set1_epi64x(by)))

typedef struct bytes {
    __m256i half[2];
} bytes;
static inline __m256i terse_32_bytes(const ints x[4]) {
    const __m256i low = _mm256_packs_epi32((__m256i)x[0], (__m256i)x[1]),
                  high = _mm256_packs_epi32((__m256i)x[2], (__m256i)x[3]);
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
#define BYTES(x) ((bytes){{terse_32_bytes(x), terse_32_bytes((x) + 4)}})
static inline bytes ADD_BYTES(bytes x, unsigned byte) {
    const __m256i each = _mm256_set1_epi8((char)byte);
    return (bytes){{_mm256_add_epi8(x.half[0], each), _mm256_add_epi8(x.half[1], each)}};
}
static inline __attribute__((always_inline)) bytes OR_WHERE(bytes x, uint64_t word, unsigned byte) {
    const __m256i which = _mm256_set1_epi64x((long long)0x8040201008040201);  // lane l asks bit l mod 8 ...
    const __m256i where = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);  // ... of
                                                                                                              // its
                                                                                                              // byte
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        const __m256i asked = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)(word >> 32 * half)), where),
                                               which);
        x.half[half] = _mm256_or_si256(x.half[half],
                                       _mm256_and_si256(_mm256_cmpeq_epi8(asked, which), _mm256_set1_epi8((char)byte)));
    }
    return x;
}
static inline bytes LIMIT_BYTES(bytes x, unsigned most) {
    const __m256i upper = _mm256_set1_epi8((char)most), lower = _mm256_set1_epi8((char)-(int)most);
    for (int half = 0; half < 2; half++) x.half[half] = _mm256_max_epi8(_mm256_min_epi8(x.half[half], upper), lower);
    return x;
}
static inline uint64_t DIFFER(bytes x, bytes y) {
    const unsigned lower = (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(x.half[0], y.half[0]));
    const unsigned upper = (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(x.half[1], y.half[1]));
    return ~((uint64_t)upper << 32 | lower);
}
static inline void STORE_BYTES(uint8_t *to, bytes x) {
    for (int half = 0; half < 2; half++) _mm256_storeu_si256((__m256i *)(to + 32 * half), x.half[half]);
}

#include "vector.h"

#endif
