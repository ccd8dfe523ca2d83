// Fields in AVX2: 64 of them at a time from bytes, and 8 of them at a time to whole numbers.
#ifndef TERSE_FIELDS_AVX2_H
#define TERSE_FIELDS_AVX2_H
#include "terse/vector_avx2.h"

#include "fields.h"
#include "field_groups.h"

typedef struct terse_packing {
    unsigned width;
    __m256i pairs, fours;  // multipliers that put two neighbours side by side
    __m256i to_top;        // and shifts that do so with two fours
    __m128i from_top;
} terse_packing;

static inline terse_packing terse_packing_of(unsigned width) {
    const unsigned narrow = width < 8 ? width : 7;
    return (terse_packing){
        width,
        _mm256_set1_epi16((short)(1 << (8 + narrow) | 1)),
        _mm256_set1_epi32(1 << (16 + 2 * narrow) | 1),
        _mm256_set1_epi64x(32 - 4 * narrow),
        _mm_cvtsi32_si128((int)(32 - 4 * narrow)),
    };
}

// x: 64 values, each less than 2^width; i, a multiple of 8, is the first one's index.
static inline __attribute__((always_inline)) void terse_pack_64(const terse_packing *p, uint8_t *fields, size_t i,
                                                                bytes x) {
    const __m256i a = x.half[0], b = x.half[1];
    uint8_t *to = fields + i / 8 * p->width;
    if (p->width == 8) {
        STORE_BYTES(to, x);
    } else if (p->width == 16) {
        for (int k = 0; k < 2; k++) {
            _mm256_storeu_si256((__m256i *)(to + 64 * k), _mm256_cvtepu8_epi16(_mm256_castsi256_si128(x.half[k])));
            _mm256_storeu_si256((__m256i *)(to + 64 * k + 32),
                                _mm256_cvtepu8_epi16(_mm256_extracti128_si256(x.half[k], 1)));
        }
    } else if (p->width == 4) {
        const __m256i mixed = _mm256_packus_epi16(_mm256_maddubs_epi16(p->pairs, a), _mm256_maddubs_epi16(p->pairs, b));
        _mm256_storeu_si256((__m256i *)to, _mm256_permute4x64_epi64(mixed, 0xD8));
    } else {
        uint64_t groups[8];
        const __m256i fours_a = _mm256_madd_epi16(_mm256_maddubs_epi16(p->pairs, a), p->fours);
        const __m256i fours_b = _mm256_madd_epi16(_mm256_maddubs_epi16(p->pairs, b), p->fours);
        _mm256_storeu_si256((__m256i *)groups, _mm256_srl_epi64(_mm256_sllv_epi32(fours_a, p->to_top), p->from_top));
        _mm256_storeu_si256((__m256i *)(groups + 4),
                            _mm256_srl_epi64(_mm256_sllv_epi32(fours_b, p->to_top), p->from_top));
        terse_join_groups(to, groups, p->width);
    }
}

typedef struct terse_unpacking {
    size_t width;
    __m256i place, shift, mask;  // of 8 fields: their bytes, where they begin in them, what is theirs
} terse_unpacking;

enum { TERSE_READ_BYTES = 16, TERSE_READ_FIELDS = 8 };  // at a time

static inline terse_unpacking terse_unpacking_of(unsigned width) {
    const __m256i bit = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)width)),
                  byte = _mm256_srli_epi32(bit, 3);
    const __m256i next = _mm256_slli_epi32(_mm256_add_epi32(byte, _mm256_set1_epi32(1)), 8),
                  nothing = _mm256_set1_epi32((int)0x80800000);
    return (terse_unpacking){width, _mm256_or_si256(_mm256_or_si256(byte, next), nothing),
                             _mm256_and_si256(bit, _mm256_set1_epi32(7)), _mm256_set1_epi32((1 << width) - 1)};
}

// Fields i + LANES k .. i + LANES (k + 1) - 1, i a multiple of 8.
static inline __attribute__((always_inline)) ints terse_unpacked(const terse_unpacking *u, const uint8_t *fields,
                                                                 size_t i, size_t k) {
    const __m128i read = _mm_loadu_si128((const __m128i *)(fields + (i + LANES * k) / 8 * u->width));
    const __m256i placed = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(read), u->place);
    return (ints)_mm256_and_si256(_mm256_srlv_epi32(placed, u->shift), u->mask);
}

#endif
