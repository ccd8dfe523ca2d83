#include "terse/vector_avx512.h"

enum { ROWS = 12 };

// Swaps the halves of neighbours that lie 8, 4, 2 and 1 rows apart: the bit of a row changes places with that bit of a
// column.
static inline void transpose(float *into, size_t into_stride, const float *x, size_t stride) {
    __m512 rows[16];
#pragma GCC unroll 16
    for (size_t i = 0; i < 16; i++) rows[i] = _mm512_loadu_ps(x + i * stride);
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                  other = _mm512_set1_epi32(16);
#pragma GCC unroll 4
    for (int half = 8; half; half /= 2) {
        const __m512i bit = _mm512_set1_epi32(half), across = _mm512_xor_si512(lane, bit);
        const __mmask16 late = _mm512_test_epi32_mask(lane, bit);
        const __m512i first = _mm512_mask_or_epi32(lane, late, across, other),
                      second = _mm512_mask_or_epi32(across, late, lane, other);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            if (!(i & half)) {
                const __m512 a = rows[i], b = rows[i + half];
                rows[i] = _mm512_permutex2var_ps(a, first, b);
                rows[i + half] = _mm512_permutex2var_ps(a, second, b);
            }
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < 16; i++) _mm512_storeu_ps(into + i * into_stride, rows[i]);
}
#define TRANSPOSE transpose

#include "low_rank.h"

const terse_low_rank terse_low_rank_avx512 = {"avx512", packed_floats, pack, add, normalize};
