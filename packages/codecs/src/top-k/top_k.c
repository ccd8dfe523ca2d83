#include "top_k.h"

#include "../measures/measures.h"

terse_codec_status top_k_check(size_t n, const terse_codec_options *options) {
    return options->k < 1 || options->k > n ? TERSE_CODEC_BAD_K : TERSE_CODEC_OK;
}

size_t top_k_wire_bytes(size_t n, const terse_codec_options *options) {
    return terse_index_bytes(options->k, n) + 4 * options->k;
}

static int count(top_k_sight *sight, const float *x, size_t begin, size_t end) {
    uint32_t most = 0;
    for (size_t i = begin; i < end; i++) {
        const uint32_t magnitude = terse_magnitude_bits(x + i);
        most = magnitude > most ? magnitude : most;
        if (magnitude >= sight->end) sight->beyond++;
        else if (magnitude >= sight->low) top_k_count_one(sight, magnitude);
    }
    return most < TERSE_INFINITE;
}

static void choose(top_k_choice *choice, size_t begin, size_t end) {
    for (size_t i = begin; i < end && choice->left; i++)
        if (terse_magnitude_bits(choice->x + i) >= choice->least) top_k_choose_one(choice, i);
}

const top_k_kernel top_k_scalar_kernel = {count, choose};

enum { SAMPLED = 4096, SAMPLE_OF = 64, LARGEST_SAMPLE = 1 << 16, ALL_SHIFT = 31 - TOP_K_RANGE_BITS };

static void look(top_k_sight *sight, uint32_t low, int shift) {
    const uint64_t end = low + ((uint64_t)TOP_K_RANGES << shift);
    memset(sight, 0, sizeof *sight);
    sight->low = low, sight->shift = shift, sight->end = end < TERSE_INFINITE ? (uint32_t)end : TERSE_INFINITE;
}

// Where the k-th largest of n probably lies: between the ranges that hold it in a sample, and some more to either side.
static void look_where_a_sample_says(top_k_sight *sight, const float *x, size_t n, size_t k) {
    const size_t samples = n / SAMPLE_OF < LARGEST_SAMPLE ? n / SAMPLE_OF : LARGEST_SAMPLE, stride = n / samples;
    look(sight, 0, ALL_SHIFT);
    // One of each stretch, not always the same one: floats may have a period.
    for (size_t s = 0; s < samples; s++) top_k_count_one(sight, terse_magnitude_bits(x + s * stride + s * 2654435761u % stride));

    const double expected = (double)k * (double)samples / (double)n, margin = 16 + expected / 8;
    double seen = 0;
    int high = TOP_K_RANGES - 1, low;
    while (high > 0 && seen + (double)sight->in[high] <= expected - margin) seen += (double)sight->in[high--];
    for (low = high; low > 0 && seen + (double)sight->in[low] < expected + margin; low--) seen += (double)sight->in[low];
    int shift = ALL_SHIFT - TOP_K_RANGE_BITS;  // as fine as it can be and see all of them
    for (int seen_at_once = 1; seen_at_once < high + 1 - low; seen_at_once *= 2) shift++;
    look(sight, (uint32_t)low << ALL_SHIFT, shift);
}

enum { PIECE = 1 << 30 };  // a vector's lanes count to 2^32

static int count_all(const top_k_kernel *kernel, top_k_sight *sight, const float *x, size_t n) {
    for (size_t at = 0; at < n; at += PIECE)
        if (!kernel->count(sight, x, at, n - at < PIECE ? n : at + PIECE)) return 0;
    return 1;
}

size_t top_k_encode(const top_k_kernel *kernel, uint8_t *wire, const float *x, size_t n, size_t k) {
    top_k_sight sight;
    if (n < SAMPLED) look(&sight, 0, ALL_SHIFT);
    else look_where_a_sample_says(&sight, x, n, k);

    top_k_choice choice = {.writer = terse_chosen_writer_at(wire, k, n), .x = x, .left = k};
    for (;;) {
        if (!count_all(kernel, &sight, x, n)) return terse_first_not_finite(x, n);
        size_t larger = sight.beyond;
        int range = TOP_K_RANGES - 1;
        while (range >= 0 && larger + sight.in[range] < k) larger += sight.in[range--];
        if (sight.beyond >= k || range < 0) {  // the sample misled
            look(&sight, 0, ALL_SHIFT);
            continue;
        }
        choice.least = sight.low + ((uint32_t)range << sight.shift);
        choice.ties = k - larger;
        if (sight.shift == 0 || choice.ties == sight.in[range]) break;  // all of a range are chosen: no need to look into it
        look(&sight, choice.least, sight.shift > TOP_K_RANGE_BITS ? sight.shift - TOP_K_RANGE_BITS : 0);
    }
    kernel->choose(&choice, 0, n);
    terse_chosen_end(&choice.writer);
    return n;
}

terse_codec_status top_k_decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    (void)begin, (void)end;
    const size_t k = options->k;
    float value;
    size_t above = 0;  // what the next index is at least
    terse_chosen_reader reader = terse_chosen_reader_at(wire, k, n);
    for (size_t j = 0; j < k; j++) {
        const size_t index = terse_next_chosen(&reader, &value);
        if (index < above || index >= n || value - value != 0.0f) return TERSE_CODEC_BAD_WIRE;
        above = index + 1;
    }
    const float scale = options->scale;
    reader = terse_chosen_reader_at(wire, k, n);
    for (size_t j = 0; j < k; j++) {
        const size_t index = terse_next_chosen(&reader, &value);
        sum[index] += scale * value;
    }
    return TERSE_CODEC_OK;
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    (void)begin, (void)end;
    return top_k_encode(&top_k_scalar_kernel, wire, x, n, options->k);
}

const terse_codec terse_top_k_scalar = {
    .name = "top-k", .implementation = "scalar", .takes = TOP_K_TAKES, .whole = 1,
    .check = top_k_check, .wire_bytes = top_k_wire_bytes, .encode = encode, .decode_add = top_k_decode_add,
};
