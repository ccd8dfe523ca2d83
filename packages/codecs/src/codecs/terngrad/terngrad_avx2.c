#include "../../shared/random/random_avx2.h"
#include "terngrad_vector.h"

static inline int below(__m256i word, __m128 magnitude, __m256d by) {
    // The upper 31 bits, twice, as a double: below 2^52 its bits count.
    const __m256i twice = _mm256_and_si256(word, _mm256_set1_epi64x(0xfffffffe));
    const __m256d whole = _mm256_set1_pd(0x1p52), draws = _mm256_sub_pd(_mm256_or_pd(_mm256_castsi256_pd(twice), whole), whole);
    return _mm256_movemask_pd(_mm256_cmp_pd(draws, _mm256_mul_pd(_mm256_cvtps_pd(magnitude), by), _CMP_LT_OQ));
}

static void draw(uint64_t *no, uint64_t *plus, const float *x, size_t i, size_t words, const terse_codec_options *o, double odds) {
    terse_random random = terse_random_of(o->seed, o->step);
    const __m256d by = _mm256_set1_pd(2 * odds);
    for (size_t w = 0; w < words; w++) {
        __m256i word[16];
        uint64_t drawn = 0, minus = 0;
        terse_prefetch(x + 64 * w + CHUNK);
        terse_random_words_avx2(&random, o->index + i + 64 * w, word);
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) {
            const __m256 value = _mm256_loadu_ps(x + 64 * w + 8 * k), magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), value);
            const int low = below(word[2 * k], _mm256_castps256_ps128(magnitude), by), high = below(word[2 * k + 1], _mm256_extractf128_ps(magnitude, 1), by);
            drawn |= (uint64_t)(unsigned)(low | high << 4) << 8 * k;
            minus |= (uint64_t)(unsigned)_mm256_movemask_ps(value) << 8 * k;
        }
        no[w] = ~drawn;
        plus[w] = drawn & ~minus;
    }
}

static void interleave(uint8_t bytes[64], const uint64_t words[8]) {
    const __m256i which = _mm256_set1_epi64x((long long)0x8040201008040201);  // lane l asks bit l mod 8 ...
    const __m256i where = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);  // ... of byte l / 8
    for (int half = 0; half < 2; half++) {
        __m256i packed = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) {
            const __m256i asked = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)(words[k] >> 32 * half)), where), which);
            packed = _mm256_or_si256(packed, _mm256_and_si256(_mm256_cmpeq_epi8(asked, which), _mm256_set1_epi8((char)(1 << k))));
        }
        _mm256_storeu_si256((__m256i *)(bytes + 32 * half), packed);
    }
}

static void add(float *sum, const uint8_t *bytes, size_t count, unsigned k, terse_terngrad_table value) {
    const __m128 four = _mm_loadu_ps(value.of);
    const __m256 table = _mm256_set_m128(four, four);
    const __m128i shift = _mm_cvtsi32_si128(2 * (int)k);
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256i codes = _mm256_srl_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(bytes + i))), shift);
        _mm256_storeu_ps(sum + i, _mm256_add_ps(_mm256_loadu_ps(sum + i), _mm256_permutevar_ps(table, codes)));  // by bits 0 and 1
    }
    for (; i < count; i++) sum[i] += value.of[bytes[i] >> 2 * k & 3];
}

TERSE_TERNGRAD(avx2)
