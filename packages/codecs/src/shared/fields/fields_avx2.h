// 64 fields at a time, from bytes, in AVX2.
#ifndef TERSE_FIELDS_AVX2_H
#define TERSE_FIELDS_AVX2_H
#include <immintrin.h>

#include "fields.h"
#include "field_groups.h"

typedef struct terse_packing_avx2 {
    unsigned width;
    __m256i pairs, fours;  // multipliers that put two neighbours side by side
    __m256i to_top;        // and shifts that do so with two fours
    __m128i from_top;
} terse_packing_avx2;

static inline terse_packing_avx2 terse_packing_avx2_of(unsigned width) {
    const unsigned narrow = width < 8 ? width : 7;
    return (terse_packing_avx2){
        width, _mm256_set1_epi16((short)(1 << (8 + narrow) | 1)), _mm256_set1_epi32(1 << (16 + 2 * narrow) | 1),
        _mm256_set1_epi64x(32 - 4 * narrow), _mm_cvtsi32_si128((int)(32 - 4 * narrow)),
    };
}

// a, b: 64 values, each less than 2^width; i, a multiple of 8, is the first one's index.
static inline __attribute__((always_inline)) void terse_pack_64_avx2(const terse_packing_avx2 *p, uint8_t *fields, size_t i, __m256i a, __m256i b) {
    uint8_t *to = fields + i / 8 * p->width;
    if (p->width == 8) {
        _mm256_storeu_si256((__m256i *)to, a);
        _mm256_storeu_si256((__m256i *)(to + 32), b);
    } else if (p->width == 16) {
        const __m256i halves[2] = {a, b};
        for (int k = 0; k < 2; k++) {
            _mm256_storeu_si256((__m256i *)(to + 64 * k), _mm256_cvtepu8_epi16(_mm256_castsi256_si128(halves[k])));
            _mm256_storeu_si256((__m256i *)(to + 64 * k + 32), _mm256_cvtepu8_epi16(_mm256_extracti128_si256(halves[k], 1)));
        }
    } else if (p->width == 4) {
        const __m256i mixed = _mm256_packus_epi16(_mm256_maddubs_epi16(p->pairs, a), _mm256_maddubs_epi16(p->pairs, b));
        _mm256_storeu_si256((__m256i *)to, _mm256_permute4x64_epi64(mixed, 0xD8));
    } else {
        uint64_t groups[8];
        const __m256i fours_a = _mm256_madd_epi16(_mm256_maddubs_epi16(p->pairs, a), p->fours);
        const __m256i fours_b = _mm256_madd_epi16(_mm256_maddubs_epi16(p->pairs, b), p->fours);
        _mm256_storeu_si256((__m256i *)groups, _mm256_srl_epi64(_mm256_sllv_epi32(fours_a, p->to_top), p->from_top));
        _mm256_storeu_si256((__m256i *)(groups + 4), _mm256_srl_epi64(_mm256_sllv_epi32(fours_b, p->to_top), p->from_top));
        switch (p->width) {
            case 2: terse_join_groups(to, groups, 2); break;
            case 3: terse_join_groups(to, groups, 3); break;
            case 5: terse_join_groups(to, groups, 5); break;
            case 6: terse_join_groups(to, groups, 6); break;
            default: terse_join_groups(to, groups, 7);
        }
    }
}

// Four times eight 32-bit numbers from -128 to 127, in order, as bytes.
static inline __m256i terse_bytes_avx2(__m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i mixed = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    return _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

#endif
