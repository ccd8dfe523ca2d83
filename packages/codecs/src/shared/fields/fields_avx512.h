// 64 fields at a time, from bytes, in AVX-512.
#ifndef TERSE_FIELDS_AVX512_H
#define TERSE_FIELDS_AVX512_H
#include <immintrin.h>

#include "fields.h"

typedef struct terse_packing_avx512 {
    unsigned width;
    __mmask16 bytes;       // that 16 fields take
    __m512i pairs, fours;  // multipliers that put two neighbours side by side
    __m512i to_top;        // and shifts that do so with two fours
    __m128i from_top;
    __m512i eights;        // the bytes of two eights
} terse_packing_avx512;

static inline terse_packing_avx512 terse_packing_avx512_of(unsigned width) {
    const unsigned narrow = width < 8 ? width : 7;
    const __m128i byte = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m128i of_second = _mm_cmpgt_epi8(byte, _mm_set1_epi8((char)(narrow - 1)));
    const __m128i eights = _mm_add_epi8(byte, _mm_and_si128(of_second, _mm_set1_epi8((char)(8 - narrow))));
    return (terse_packing_avx512){
        width, (__mmask16)((1u << 2 * narrow) - 1), _mm512_set1_epi16((short)(1 << (8 + narrow) | 1)), _mm512_set1_epi32(1 << (16 + 2 * narrow) | 1),
        _mm512_set1_epi64(32 - 4 * narrow), _mm_cvtsi32_si128((int)(32 - 4 * narrow)), _mm512_broadcast_i32x4(eights),
    };
}

// x: 64 values, each less than 2^width; i, a multiple of 8, is the first one's index.
static inline __attribute__((always_inline)) void terse_pack_64_avx512(const terse_packing_avx512 *p, uint8_t *fields, size_t i, __m512i x) {
    uint8_t *to = fields + i / 8 * p->width;
    if (p->width == 8) {
        _mm512_storeu_si512(to, x);
    } else if (p->width == 16) {
        _mm512_storeu_si512(to, _mm512_cvtepu8_epi16(_mm512_castsi512_si256(x)));
        _mm512_storeu_si512(to + 64, _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(x, 1)));
    } else if (p->width == 4) {
        _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(p->pairs, x)));
    } else {
        const __m512i fours = _mm512_madd_epi16(_mm512_maddubs_epi16(p->pairs, x), p->fours);
        const __m512i eights = _mm512_shuffle_epi8(_mm512_srl_epi64(_mm512_sllv_epi32(fours, p->to_top), p->from_top), p->eights);
        const size_t step = 2 * p->width;
        _mm_mask_storeu_epi8(to, p->bytes, _mm512_castsi512_si128(eights));
        _mm_mask_storeu_epi8(to + step, p->bytes, _mm512_extracti32x4_epi32(eights, 1));
        _mm_mask_storeu_epi8(to + 2 * step, p->bytes, _mm512_extracti32x4_epi32(eights, 2));
        _mm_mask_storeu_epi8(to + 3 * step, p->bytes, _mm512_extracti32x4_epi32(eights, 3));
    }
}

// Four times sixteen 32-bit numbers from -128 to 127, in order, as bytes.
static inline __m512i terse_bytes_avx512(__m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i mixed = _mm512_packs_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), mixed);
}

#endif
