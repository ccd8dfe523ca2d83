#include "../../shared/random/random_avx512.h"
#include "terngrad_vector.h"

static void draw(uint64_t *no, uint64_t *plus, const float *x, size_t i, size_t words, const terse_codec_options *o, double odds) {
    terse_random random = terse_random_of(o->seed, o->step);
    const __m512d by = _mm512_set1_pd(2 * odds);
    for (size_t w = 0; w < words; w++) {
        __m512i word[8];
        uint64_t drawn = 0, minus = 0;
        terse_prefetch(x + 64 * w + CHUNK);
        terse_random_words_avx512(&random, o->index + i + 64 * w, word);
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) {
            // Compares twice the upper 31 bits of a word with p 2^32 rounded up: both are integers.
            const __m512d magnitude = _mm512_abs_pd(_mm512_cvtps_pd(_mm256_loadu_ps(x + 64 * w + 8 * k)));
            const __m512i most = _mm512_cvt_roundpd_epu64(_mm512_mul_pd(magnitude, by), _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
            drawn |= (uint64_t)_mm512_cmplt_epu64_mask(_mm512_and_si512(word[k], _mm512_set1_epi64(0xfffffffe)), most) << 8 * k;
        }
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) minus |= (uint64_t)_mm512_movepi32_mask(_mm512_loadu_si512(x + 64 * w + 16 * k)) << 16 * k;
        no[w] = ~drawn;
        plus[w] = drawn & ~minus;
    }
}

static void interleave(uint8_t bytes[64], const uint64_t words[8]) {
    __m512i packed = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) packed = _mm512_mask_add_epi8(packed, words[k], packed, _mm512_set1_epi8((char)(1 << k)));
    _mm512_storeu_si512(bytes, packed);
}

static void add(float *sum, const uint8_t *bytes, size_t count, unsigned k, terse_terngrad_table value) {
    const __m512 table = _mm512_broadcast_f32x4(_mm_loadu_ps(value.of));
    const __m128i shift = _mm_cvtsi32_si128(2 * (int)k);
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const __m512i codes = _mm512_srl_epi32(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(bytes + i))), shift);
        _mm512_storeu_ps(sum + i, _mm512_add_ps(_mm512_loadu_ps(sum + i), _mm512_permutevar_ps(table, codes)));  // by bits 0 and 1
    }
    for (; i < count; i++) sum[i] += value.of[bytes[i] >> 2 * k & 3];
}

TERSE_TERNGRAD(avx512)
