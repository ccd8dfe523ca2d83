#include "../../shared/fields/fields_avx2.h"
#include "one_pass.h"
#include "terse/walk.h"

typedef struct quantising {
    uint8_t *fields;
    const float *x;
    size_t ahead;
    terse_packing_avx2 packing;
    __m256d factor;
    __m256 most;  // what becomes level s
    __m256i s;
} quantising;

// In the lower halves.
static inline __m256 level_4(const quantising *q, __m128 x) {
    const __m256d level = _mm256_mul_pd(_mm256_cvtps_pd(x), q->factor);
    return _mm256_castpd_ps(_mm256_add_pd(_mm256_add_pd(level, _mm256_set1_pd(TERSE_L1_MEND)), _mm256_set1_pd(TERSE_L1_ROUND)));
}

// Elements 0 1 4 5, 2 3 6 7.
static inline __m256i mixed_level_8(const quantising *q, const float *x) {
    const __m256 least = _mm256_xor_ps(q->most, _mm256_set1_ps(-0.0f));
    const __m256 limited = _mm256_max_ps(_mm256_min_ps(_mm256_loadu_ps(x), q->most), least);
    const __m256 low = level_4(q, _mm256_castps256_ps128(limited)), high = level_4(q, _mm256_extractf128_ps(limited, 1));
    return _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0x88));
}

static inline __m256i field_32(const quantising *q, const float *x) {
    const __m256i in_order = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
    const __m256i mixed = terse_bytes_avx2(mixed_level_8(q, x), mixed_level_8(q, x + 8), mixed_level_8(q, x + 16), mixed_level_8(q, x + 24));
    return _mm256_add_epi8(_mm256_shuffle_epi8(mixed, in_order), q->s);
}

TERSE_ROUND_FUNCTION quantise_round(void *context, size_t i) {
    const quantising *q = context;
    terse_prefetch(q->x + i + q->ahead);
    terse_pack_64_avx2(&q->packing, q->fields, i, field_32(q, q->x + i), field_32(q, q->x + i + 32));
}

static void quantise(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from, size_t to) {
    const size_t first = (from + 7) / 8 * 8;
    size_t done = from;
    if (first < to) {
        terse_l1_quantise_scalar(fields, x, o, scale, from, first);
        const unsigned s = terse_levels_a_side(o);
        const quantising q = {
            fields + first / 8 * terse_field_width(o), x + first, terse_levels_ahead(o), terse_packing_avx2_of(terse_field_width(o)),
            _mm256_set1_pd(terse_l1_factor(o, scale)), _mm256_set1_ps((float)(s / terse_l1_factor(o, scale))), _mm256_set1_epi8((char)s),
        };
        done = first + terse_walk(to - first, quantise_round, (void *)&q);
    }
    terse_l1_quantise_scalar(fields, x, o, scale, done, to);
}

enum { AHEAD = 512 };  // elements that are asked for ahead, as in reductions_avx2.c

typedef struct reading {
    const float *x;
    uint8_t *fields;
    __m256 low, middle, high, most;  // most: of a magnitude, beyond level s by either factor
    __m256i s;
    terse_packing_avx2 packing;
    double sums[4][16];  // of each chunk
} reading;

static inline __m256i near_level_8(const reading *r, const float *x, __m256 factor) {
    const __m256 least = _mm256_xor_ps(r->most, _mm256_set1_ps(-0.0f));
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_max_ps(_mm256_min_ps(_mm256_loadu_ps(x), r->most), least), factor));
}

static inline __m256i near_level_32(const reading *r, const float *x, __m256 factor) {
    const __m256i levels = terse_bytes_avx2(near_level_8(r, x, factor), near_level_8(r, x + 8, factor), near_level_8(r, x + 16, factor), near_level_8(r, x + 24, factor));
    return _mm256_max_epi8(_mm256_min_epi8(levels, r->s), _mm256_sub_epi8(_mm256_setzero_si256(), r->s));
}

static inline __attribute__((always_inline)) uint64_t read_round(void *context, size_t c, size_t i) {
    reading *r = context;
    const float *x = r->x + i;
    terse_prefetch(x + AHEAD);
    for (int j = 0; j < 16; j += 4) {
        __m256d sum = _mm256_loadu_pd(r->sums[c] + j);
        for (int k = j; k < 64; k += 16) sum = _mm256_add_pd(sum, _mm256_andnot_pd(_mm256_set1_pd(-0.0), _mm256_cvtps_pd(_mm_loadu_ps(x + k))));
        _mm256_storeu_pd(r->sums[c] + j, sum);
    }
    __m256i levels[2];
    uint64_t undecided = 0;
    for (int half = 0; half < 2; half++) {
        levels[half] = near_level_32(r, x + 32 * half, r->low);
        const __m256i same = _mm256_cmpeq_epi8(levels[half], near_level_32(r, x + 32 * half, r->high));
        undecided |= (uint64_t)(uint32_t)~_mm256_movemask_epi8(same) << 32 * half;
    }
    if (undecided)
        for (int half = 0; half < 2; half++) levels[half] = near_level_32(r, x + 32 * half, r->middle);
    terse_pack_64_avx2(&r->packing, r->fields, i, _mm256_add_epi8(levels[0], r->s), _mm256_add_epi8(levels[1], r->s));
    return undecided;
}

static size_t read_group(double of_chunks[4], uint8_t *fields, terse_l1_undecided *undecided, const float *x, const terse_l1_guess *g) {
    reading r = {
        x, fields, _mm256_set1_ps(g->low), _mm256_set1_ps(g->middle), _mm256_set1_ps(g->high), _mm256_set1_ps((float)(g->s + 1) / g->low),
        _mm256_set1_epi8((char)g->s), terse_packing_avx2_of(g->width), {{0}},
    };
    const size_t count = terse_l1_walk_group(undecided, x, read_round, &r);
    for (int c = 0; c < 4; c++) of_chunks[c] = terse_reductions_fold(r.sums[c]);
    return count;
}

const terse_l1_kernel terse_l1_kernel_avx2 = {&terse_reductions_avx2, quantise, read_group};

static int encode_in_one_pass(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o) {
    return terse_l1_encode_in_one_pass(&terse_l1_kernel_avx2, wire, x, n, o);
}

static double scale_of(const float *x, size_t n) { return terse_reductions_avx2.sum_of_magnitudes(x, n) / (double)n; }

static const terse_levels_codec l1 = {TERSE_L1_REACH, scale_of, quantise, terse_fields_add_avx2, encode_in_one_pass};
TERSE_LEVELS_TABLE(l1, l1, TERSE_L1_TAKES, avx2)
