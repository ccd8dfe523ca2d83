#include "../../shared/fields/fields_avx512.h"
#include "one_pass.h"
#include "terse/walk.h"

typedef struct quantising {
    uint8_t *fields;
    const float *x;
    size_t ahead;
    terse_packing_avx512 packing;
    __m512d factor;
    __m256 most;  // what becomes level s
    __m512i s;
} quantising;

static inline __m256i level_8(const quantising *q, __m256 x) {
    enum { LESSER_MAGNITUDE = 2 };  // with the sign of x
    const __m512d level = _mm512_mul_pd(_mm512_cvtps_pd(_mm256_range_ps(x, q->most, LESSER_MAGNITUDE)), q->factor);
    const __m512d whole = _mm512_add_pd(_mm512_add_pd(level, _mm512_set1_pd(TERSE_L1_MEND)), _mm512_set1_pd(TERSE_L1_ROUND));
    return _mm512_cvtepi64_epi32(_mm512_castpd_si512(whole));
}

static inline __m128i level_16(const quantising *q, const float *x) {
    const __m256i low = level_8(q, _mm256_loadu_ps(x)), high = level_8(q, _mm256_loadu_ps(x + 8));
    return _mm512_cvtepi32_epi8(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
}

TERSE_ROUND_FUNCTION quantise_round(void *context, size_t i) {
    const quantising *q = context;
    terse_prefetch(q->x + i + q->ahead);
    __m512i levels = _mm512_castsi128_si512(level_16(q, q->x + i));
    levels = _mm512_inserti32x4(levels, level_16(q, q->x + i + 16), 1);
    levels = _mm512_inserti32x4(levels, level_16(q, q->x + i + 32), 2);
    levels = _mm512_inserti32x4(levels, level_16(q, q->x + i + 48), 3);
    terse_pack_64_avx512(&q->packing, q->fields, i, _mm512_add_epi8(levels, q->s));
}

static void quantise(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from, size_t to) {
    const size_t first = (from + 7) / 8 * 8;
    size_t done = from;
    if (first < to) {
        terse_l1_quantise_scalar(fields, x, o, scale, from, first);
        const unsigned s = terse_levels_a_side(o);
        const quantising q = {
            fields + first / 8 * terse_field_width(o), x + first, terse_levels_ahead(o), terse_packing_avx512_of(terse_field_width(o)),
            _mm512_set1_pd(terse_l1_factor(o, scale)), _mm256_set1_ps((float)(s / terse_l1_factor(o, scale))), _mm512_set1_epi8((char)s),
        };
        done = first + terse_walk(to - first, quantise_round, (void *)&q);
    }
    terse_l1_quantise_scalar(fields, x, o, scale, done, to);
}

enum { AHEAD = 512 };  // elements that are asked for ahead, as in reductions_avx512.c

typedef struct reading {
    const float *x;
    uint8_t *fields;
    __m512 low, middle, high, most;  // most: of a magnitude, beyond level s by either factor
    __m512i s;
    terse_packing_avx512 packing;
    __m512d sums[4][2];  // of each chunk
} reading;

// Four of each 16 in turn.
static inline __m512i levels_64(const reading *r, const __m512 x[4], __m512 factor) {
    __m512i levels[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) levels[k] = _mm512_cvtps_epi32(_mm512_mul_ps(x[k], factor));
    const __m512i mixed = _mm512_packs_epi16(_mm512_packs_epi32(levels[0], levels[1]), _mm512_packs_epi32(levels[2], levels[3]));
    return _mm512_max_epi8(_mm512_min_epi8(mixed, r->s), _mm512_sub_epi8(_mm512_setzero_si512(), r->s));
}

static inline __m512i in_order(__m512i mixed) {
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), mixed);
}

static inline __attribute__((always_inline)) uint64_t read_round(void *context, size_t c, size_t i) {
    reading *r = context;
    const float *x = r->x + i;
    terse_prefetch(x + AHEAD);
    __m512 limited[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        r->sums[c][0] = _mm512_add_pd(r->sums[c][0], _mm512_abs_pd(_mm512_cvtps_pd(_mm256_loadu_ps(x + 16 * k))));
        r->sums[c][1] = _mm512_add_pd(r->sums[c][1], _mm512_abs_pd(_mm512_cvtps_pd(_mm256_loadu_ps(x + 16 * k + 8))));
        limited[k] = _mm512_range_ps(_mm512_loadu_ps(x + 16 * k), r->most, 2);  // the smaller magnitude, with the sign of x
    }
    __m512i levels = levels_64(r, limited, r->low);
    const __m512i differ = _mm512_xor_si512(levels, levels_64(r, limited, r->high));
    uint64_t undecided = _mm512_test_epi8_mask(differ, differ);
    if (undecided) {
        levels = levels_64(r, limited, r->middle);
        undecided = _mm512_test_epi8_mask(in_order(differ), in_order(differ));
    }
    terse_pack_64_avx512(&r->packing, r->fields, i, in_order(_mm512_add_epi8(levels, r->s)));
    return undecided;
}

static size_t read_group(double of_chunks[4], uint8_t *fields, terse_l1_undecided *undecided, const float *x, const terse_l1_guess *g) {
    reading r = {
        x, fields, _mm512_set1_ps(g->low), _mm512_set1_ps(g->middle), _mm512_set1_ps(g->high), _mm512_set1_ps((float)(g->s + 1) / g->low),
        _mm512_set1_epi8((char)g->s), terse_packing_avx512_of(g->width), {{_mm512_setzero_pd()}},
    };
    const size_t count = terse_l1_walk_group(undecided, x, read_round, &r);
    for (int c = 0; c < 4; c++) {
        double partial[16];
        _mm512_storeu_pd(partial, r.sums[c][0]);
        _mm512_storeu_pd(partial + 8, r.sums[c][1]);
        of_chunks[c] = terse_reductions_fold(partial);
    }
    return count;
}

const terse_l1_kernel terse_l1_kernel_avx512 = {&terse_reductions_avx512, quantise, read_group};

static int encode_in_one_pass(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o) {
    return terse_l1_encode_in_one_pass(&terse_l1_kernel_avx512, wire, x, n, o);
}

static double scale_of(const float *x, size_t n) { return terse_reductions_avx512.sum_of_magnitudes(x, n) / (double)n; }

static const terse_levels_codec l1 = {TERSE_L1_REACH, scale_of, quantise, terse_fields_add_avx512, encode_in_one_pass};
TERSE_LEVELS_TABLE(l1, l1, TERSE_L1_TAKES, avx512)
