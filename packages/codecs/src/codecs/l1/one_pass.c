#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "one_pass.h"
#include "terse/parallel.h"

enum { SAMPLES_AHEAD = 4 };

typedef float floats __attribute__((vector_size(16)));  // every processor has these
typedef uint32_t words __attribute__((vector_size(16)));

typedef struct reading {
    const terse_l1_kernel *kernel;
    const float *x;
    size_t n, stretch;
    uint8_t *fields;
    const terse_codec_options *options;
    atomic_size_t parts;
    struct {
        double sum, squares;
    } of_part[TERSE_PARALLEL_MAX_PARTS];  // of the means at each place
    terse_l1_guess guess;
    double *of_chunks;
    size_t *undecided_count;  // of each group
    terse_l1_undecided *undecided;
    float scale;  // of the whole vector, when all is summed
    double factor;
    int guessed_well;
} reading;

static double mean_of_sample(const float *x) {
    floats sum[4] = {{0}};
    for (size_t i = 0; i < TERSE_L1_SAMPLE; i += 16)
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++) {
            words bits;
            memcpy(&bits, x + i + 4 * k, sizeof bits);
            sum[k] += (floats)(bits & 0x7fffffffu);
        }
    const floats all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    return ((double)all[0] + all[1] + all[2] + all[3]) / TERSE_L1_SAMPLE;
}

static const float *sampled(const reading *r, size_t i) { return r->x + terse_l1_sampled(r->stretch, i); }

static void sample_part(void *context, size_t begin, size_t end) {
    reading *r = context;
    double sum = 0, squares = 0;
    for (size_t s = begin / r->stretch, last = end / r->stretch; s < last; s++) {
        if (s + SAMPLES_AHEAD < last)
            for (size_t i = 0; i < TERSE_L1_SAMPLE; i += TERSE_ROUND) terse_prefetch(sampled(r, s + SAMPLES_AHEAD) + i);
        const double mean = mean_of_sample(sampled(r, s));
        sum += mean, squares += mean * mean;
    }
    const size_t part = atomic_fetch_add(&r->parts, 1);
    r->of_part[part].sum = sum, r->of_part[part].squares = squares;
}

// The bounds of the factor, from the sample. False if the sample is not precise enough.
static int guess(reading *r) {
    const double s = terse_levels_a_side(r->options);
    r->stretch = terse_l1_stretch(r->n, terse_levels_a_side(r->options));
    if (!r->stretch) return 0;
    const size_t samples = r->n / r->stretch;
    terse_parallel(samples * r->stretch, r->stretch, sample_part, r);
    double sum = 0, squares = 0;
    for (size_t part = 0; part < atomic_load(&r->parts); part++)
        sum += r->of_part[part].sum, squares += r->of_part[part].squares;
    const double mean = sum / (double)samples, variance = (squares - sum * mean) / (double)(samples - 1);
    // If the bounds are wrong (one time in a hundred for 2.6 standard deviations of a normal error), x is read again.
    const double off = 2.6 * sqrt((variance > 0 ? variance : 0) / (double)samples) / mean + 0x1p-17;
    const double factor = s / (TERSE_L1_REACH * mean);
    if (!(s * off < 1.0 / 24 && factor > 0x1p-90 && factor < 0x1p90)) return 0;
    r->guess = (terse_l1_guess){terse_field_width(r->options), terse_levels_a_side(r->options),
                                (float)(factor * (1 - off)), (float)factor, (float)(factor * (1 + off))};
    return 1;
}

static void read_part(void *context, size_t begin, size_t end) {
    reading *r = context;
    for (size_t at = begin; at < end; at += TERSE_L1_GROUP) {
        const size_t g = at / TERSE_L1_GROUP;
        r->undecided_count[g] = r->kernel->read_group(r->of_chunks + at / TERSE_REDUCTION_CHUNK,
                                                      r->fields + at / 8 * r->guess.width,
                                                      r->undecided + g * TERSE_L1_UNDECIDED, r->x + at, &r->guess);
    }
}

// Rounding and clamping are monotone: if a lower and an upper factor give x the same level, every factor between them
// does, and -x gets the negative level. The bounds are wider than the rounding error of fp32.
static int lies_between(const terse_l1_guess *g, double factor) {
    return g->low <= factor * (1 - 0x1p-20) && factor * (1 + 0x1p-20) <= g->high;
}

// The field of an undecided element, in fp32, for one SIMD register at a time.
static unsigned field_by_guess(const terse_l1_guess *g, float x) {
    const float s = (float)g->s, whole = 0x1.8p23f;
    float level = x * g->middle;
    level = level > s ? s : level < -s ? -s : level;
    return (unsigned)((level + whole - whole) + s);
}

static void decide_part(void *context, size_t begin, size_t end) {
    const reading *r = context;
    for (size_t at = begin; at < end; at += TERSE_L1_GROUP) {
        const size_t g = at / TERSE_L1_GROUP, to = end - at < TERSE_L1_GROUP ? end : at + TERSE_L1_GROUP;
        if (to - at < TERSE_L1_GROUP || !r->guessed_well || r->undecided_count[g] > TERSE_L1_UNDECIDED) {
            r->kernel->quantise(r->fields, r->x, r->options, r->scale, at, to);
            continue;
        }
        // Finds which fields change, and prefetches their bytes; then changes them.
        terse_l1_undecided *undecided = r->undecided + g * TERSE_L1_UNDECIDED;
        size_t changes = 0;
        for (size_t u = 0; u < r->undecided_count[g]; u++) {
            const terse_l1_undecided it = undecided[u];
            if (terse_l1_field(it.x, r->guess.s, r->factor) == field_by_guess(&r->guess, it.x)) continue;
            __builtin_prefetch(r->fields + (at + it.at) * r->guess.width / 8, 1);
            undecided[changes++] = it;
        }
        for (size_t u = 0; u < changes; u++)
            terse_change_field(r->fields, at + undecided[u].at, r->guess.width,
                               terse_l1_field(undecided[u].x, r->guess.s, r->factor));
    }
}

int terse_l1_encode_in_one_pass(const terse_l1_kernel *kernel, uint8_t *wire, const float *x, size_t n,
                                const terse_codec_options *o) {
    reading r = {.kernel = kernel, .x = x, .n = n, .fields = terse_levels_fields(wire, n, o), .options = o};
    const size_t groups = n / TERSE_L1_GROUP, read = groups * TERSE_L1_GROUP, chunks = read / TERSE_REDUCTION_CHUNK;
    if (!guess(&r)) return 0;
    r.of_chunks = malloc(chunks * sizeof *r.of_chunks +
                         groups * (sizeof *r.undecided_count + TERSE_L1_UNDECIDED * sizeof *r.undecided));
    if (!r.of_chunks) return 0;
    r.undecided_count = (size_t *)(r.of_chunks + chunks);
    r.undecided = (terse_l1_undecided *)(r.undecided_count + groups);

    terse_parallel(read, TERSE_L1_GROUP, read_part, &r);
    double sum = 0;
    for (size_t c = 0; c < chunks; c++) sum += r.of_chunks[c];
    for (size_t at = read; at < n; at += TERSE_REDUCTION_CHUNK)
        sum += kernel->reductions->sum_of_magnitudes(x + at,
                                                     n - at < TERSE_REDUCTION_CHUNK ? n - at : TERSE_REDUCTION_CHUNK);
    r.scale = (float)(sum / (double)n);
    const int good = terse_levels_can_be_a_scale(r.scale, TERSE_L1_REACH);
    if (good) {
        if (!o->unscaled) terse_set_scale(wire, 0, r.scale);
        r.factor = terse_l1_factor(o, r.scale);
        r.guessed_well = lies_between(&r.guess, r.factor);
        terse_parallel(n, TERSE_L1_GROUP, decide_part, &r);
    }
    free(r.of_chunks);
    return good;
}
