// AVX-512's words: terse/vector.h says what they mean.
#ifndef TERSE_VECTOR_AVX512_H
#define TERSE_VECTOR_AVX512_H
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define INSTRUCTIONS avx512
enum { LANES = 16 };

typedef __m512 vec;
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define SPLAT _mm512_set1_ps
#define ABS _mm512_abs_ps
#define SQRT _mm512_sqrt_ps
#define FMA _mm512_fmadd_ps
#define LIMIT(x, most) _mm512_range_ps(x, most, 2)  // the smaller magnitude, with the sign of x
#define TABLE(four) _mm512_broadcast_f32x4(_mm_loadu_ps(four))
#define LOOK_UP(table, which) _mm512_permutevar_ps(table, (__m512i)(which))
typedef __m512 eight_floats;  // twice
#define EIGHT_FLOATS(eight) _mm512_broadcast_f32x8(_mm256_loadu_ps(eight))
#define LOOK_UP_8(eight, which) _mm512_permutexvar_ps((__m512i)(which), eight)

typedef int32_t ints __attribute__((vector_size(64)));
#define SPLAT_INTS(value) ((ints)_mm512_set1_epi32(value))
#define MOST_INTS(a, b) ((ints)_mm512_max_epi32((__m512i)(a), (__m512i)(b)))
#define LEAST_INTS(a, b) ((ints)_mm512_min_epi32((__m512i)(a), (__m512i)(b)))
#define LARGEST_INT(x) _mm512_reduce_max_epi32((__m512i)(x))
#define ROUND(x) ((ints)_mm512_cvtps_epi32(x))
#define LOAD_INT8(from) ((ints)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(from))))
#define STORE_INT8(to, x) _mm_storeu_si128((__m128i *)(to), _mm512_cvtepi32_epi8((__m512i)(x)))
#define ANY(x) (_mm512_test_epi32_mask((__m512i)(x), (__m512i)(x)) != 0)

typedef __mmask16 mask;
#define ABOVE(a, b) _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ)
#define NOT_BELOW(a, b) _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ)
#define EQUAL(a, b) _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)
#define INTS_ABOVE(a, b) _mm512_cmpgt_epi32_mask((__m512i)(a), (__m512i)(b))
#define BUT_NOT(m, n) ((mask)((m) & ~(n)))
#define COUNT(m, x) ((ints)_mm512_mask_sub_epi32((__m512i)(x), m, (__m512i)(x), _mm512_set1_epi32(-1)))
#define CHOOSE(m, yes, no) _mm512_mask_blend_ps(m, no, yes)
#define ADD_WHERE(m, a, b) _mm512_mask_add_ps(a, m, a, b)

static inline __attribute__((always_inline)) uint64_t WORD(const mask lanes[4]) {
    return (uint64_t)lanes[0] | (uint64_t)lanes[1] << 16 | (uint64_t)lanes[2] << 32 | (uint64_t)lanes[3] << 48;
}
#define LANES_OF(word, k) ((mask)((word) >> 16 * (k)))

typedef __m512d wide;
#define SPLAT_WIDE _mm512_set1_pd
#define LOAD_WIDE(from) _mm512_cvtps_pd(_mm256_loadu_ps(from))
#define STORE_WIDE _mm512_storeu_pd
#define WIDE_ABS _mm512_abs_pd
#define WIDE_LIMIT(x, most) _mm512_range_pd(x, most, 0x0A)
#define LOWER(x) _mm512_cvtps_pd(_mm512_castps512_ps256(x))
#define UPPER(x) _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))
#define LOWER_INTS(x) _mm512_cvtepi32_pd(_mm512_castsi512_si256((__m512i)(x)))
#define UPPER_INTS(x) _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64((__m512i)(x), 1))
#define NARROW(lower, upper) \
    _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(lower)), _mm512_cvtpd_ps(upper), 1)
#define ROUND_WIDE(lower, upper) \
    ((ints)_mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtpd_epi32(lower)), _mm512_cvtpd_epi32(upper), 1))
#define TRUNCATE_WIDE(lower, upper) \
    ((ints)_mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvttpd_epi32(lower)), _mm512_cvttpd_epi32(upper), 1))

typedef __mmask8 wide_mask;
#define WIDE_BELOW(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
#define WIDE_CHOOSE(m, yes, no) _mm512_mask_blend_pd(m, no, yes)
#define WIDE_ABOVE(a, b, lower, upper) \
    ((mask)(_mm512_cmp_pd_mask(a, lower, _CMP_GT_OQ) | _mm512_cmp_pd_mask(b, upper, _CMP_GT_OQ) << 8))
#define LOWER_BITS(lower, upper) TERSE_BITS(lower, upper, 0)
#define UPPER_BITS(lower, upper) TERSE_BITS(lower, upper, 1)
#define TERSE_BITS(lower, upper, odd)                                                                  \
    ((ints)_mm512_permutex2var_epi32(                                                                  \
        (__m512i)(lower),                                                                              \
        _mm512_add_epi32(_mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), \
                         _mm512_set1_epi32(odd)),                                                      \
        (__m512i)(upper)))
typedef uint64_t longs __attribute__((vector_size(64)));
#define CEIL(x) ((longs)_mm512_cvt_roundpd_epi64(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC))
#define MULTIPLY(a, by) ((longs)_mm512_mul_epu32((__m512i)(a), _mm512_set1_epi64(by)))

typedef struct bytes {
    __m512i all;
} bytes;
static inline __attribute__((always_inline)) bytes BYTES(const ints x[4]) {
    const __m512i low = _mm512_packs_epi32((__m512i)x[0], (__m512i)x[1]),
                  high = _mm512_packs_epi32((__m512i)x[2], (__m512i)x[3]);
    return (bytes){_mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                                            _mm512_packs_epi16(low, high))};
}
#define ADD_BYTES(x, byte) ((bytes){_mm512_add_epi8((x).all, _mm512_set1_epi8((char)(byte)))})
#define OR_WHERE(x, word, byte) ((bytes){_mm512_mask_add_epi8((x).all, word, (x).all, _mm512_set1_epi8((char)(byte)))})
#define LIMIT_BYTES(x, most)                                                           \
    ((bytes){_mm512_max_epi8(_mm512_min_epi8((x).all, _mm512_set1_epi8((char)(most))), \
                             _mm512_set1_epi8((char)-(int)(most)))})
#define DIFFER(x, y) ((uint64_t)_mm512_cmpneq_epi8_mask((x).all, (y).all))
#define STORE_BYTES(to, x) _mm512_storeu_si512(to, (x).all)

#include "vector.h"

#endif
