// Fields in AVX-512: 64 of them at a time from bytes, and 16 of them at a time to whole numbers.
#ifndef TERSE_FIELDS_AVX512_H
#define TERSE_FIELDS_AVX512_H
#include "terse/vector_avx512.h"

#include "fields.h"

typedef struct terse_packing {
    unsigned width;
    __mmask16 bytes;       // that 16 fields take
    __m512i pairs, fours;  // multipliers that put two neighbours side by side
    __m512i to_top;        // and shifts that do so with two fours
    __m128i from_top;
    __m512i eights;  // the bytes of two eights
} terse_packing;

static inline terse_packing terse_packing_of(unsigned width) {
    const unsigned narrow = width < 8 ? width : 7;
    const __m128i byte = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m128i of_second = _mm_cmpgt_epi8(byte, _mm_set1_epi8((char)(narrow - 1)));
    const __m128i eights = _mm_add_epi8(byte, _mm_and_si128(of_second, _mm_set1_epi8((char)(8 - narrow))));
    return (terse_packing){
        width,
        (__mmask16)((1u << 2 * narrow) - 1),
        _mm512_set1_epi16((short)(1 << (8 + narrow) | 1)),
        _mm512_set1_epi32(1 << (16 + 2 * narrow) | 1),
        _mm512_set1_epi64(32 - 4 * narrow),
        _mm_cvtsi32_si128((int)(32 - 4 * narrow)),
        _mm512_broadcast_i32x4(eights),
    };
}

// x: 64 values, each less than 2^width; i, a multiple of 8, is the first one's index.
static inline __attribute__((always_inline)) void terse_pack_64(const terse_packing *p, uint8_t *fields, size_t i,
                                                                bytes x) {
    uint8_t *to = fields + i / 8 * p->width;
    if (p->width == 8) {
        STORE_BYTES(to, x);
    } else if (p->width == 16) {
        _mm512_storeu_si512(to, _mm512_cvtepu8_epi16(_mm512_castsi512_si256(x.all)));
        _mm512_storeu_si512(to + 64, _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(x.all, 1)));
    } else if (p->width == 4) {
        _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(p->pairs, x.all)));
    } else {
        const __m512i fours = _mm512_madd_epi16(_mm512_maddubs_epi16(p->pairs, x.all), p->fours);
        const __m512i eights = _mm512_shuffle_epi8(_mm512_srl_epi64(_mm512_sllv_epi32(fours, p->to_top), p->from_top),
                                                   p->eights);
        const size_t step = 2 * p->width;
        _mm_mask_storeu_epi8(to, p->bytes, _mm512_castsi512_si128(eights));
        _mm_mask_storeu_epi8(to + step, p->bytes, _mm512_extracti32x4_epi32(eights, 1));
        _mm_mask_storeu_epi8(to + 2 * step, p->bytes, _mm512_extracti32x4_epi32(eights, 2));
        _mm_mask_storeu_epi8(to + 3 * step, p->bytes, _mm512_extracti32x4_epi32(eights, 3));
    }
}

typedef struct terse_unpacking {
    size_t width;
    __m512i place, shift, mask;  // of 16 fields: their bytes, where they begin in them, what is theirs
} terse_unpacking;

enum { TERSE_READ_BYTES = 32, TERSE_READ_FIELDS = 16 };  // at a time; less where fields do not have 16 bits

static inline terse_unpacking terse_unpacking_of(unsigned width) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i bit = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)width)), byte = _mm512_srli_epi32(bit, 3);
    const __m512i next = _mm512_slli_epi32(_mm512_add_epi32(byte, _mm512_set1_epi32(1)), 8),
                  nothing = _mm512_set1_epi32((int)0x80800000);
    return (terse_unpacking){width, _mm512_or_si512(_mm512_or_si512(byte, next), nothing),
                             _mm512_and_si512(bit, _mm512_set1_epi32(7)), _mm512_set1_epi32((1 << width) - 1)};
}

// Fields i + LANES k .. i + LANES (k + 1) - 1, i a multiple of 8.
static inline __attribute__((always_inline)) ints terse_unpacked(const terse_unpacking *u, const uint8_t *fields,
                                                                 size_t i, size_t k) {
    const uint8_t *at = fields + (i + LANES * k) / 8 * u->width;
    if (u->width == 16) return (ints)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)at));
    const __m512i placed = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)at)), u->place);
    return (ints)_mm512_and_si512(_mm512_srlv_epi32(placed, u->shift), u->mask);
}

#endif
