#include "check/check.h"

static float moderate(void) { return any_float() * 0x1p-20f; }  // so small that coefficients fit fp32

// So large that the sum of a few lies near the end of fp32, or beyond it.
static float large(void) {
    return (float)((double)(int64_t)random_word() * 0x1p-63 * (random_word() % 16 ? 0x1p123 : 0x1p127));
}
static float huge(void) { return (float)((double)(int64_t)random_word() * 0x1p-63 * 0x1.fffffep127); }

static void odd_chunks(terse_codec_options *o, size_t n) { o->block = 3 * (n % 50) + 7, o->k = 5; }
// The longest chunk there may be, but a shorter one where the last chunk is cut: its time may be its length squared.
static void longest_chunks(terse_codec_options *o, size_t n) { o->block = o->k = n && n % 4096 == 0 ? 4096 : 640; }
static void squares(terse_codec_options *o, size_t n) {
    o->block = 1, o->k = 1, o->dimensions = 2;
    for (size_t side = 2; side <= 128; side++)
        if (n % (side * side) == 0) o->block = side, o->k = side;
}

const configurations terse_dct_top_k_configurations = THESE(
    {"chunks of 64", {.block = 64, .k = 8}, .number = moderate},
    {"chunks of 7 to 154", .fill = odd_chunks, .number = moderate},
    {"chunks of 768", {.block = 768, .k = 20, .dimensions = 1}, .number = moderate},
    {"all of chunks of 640 or 4096", .fill = longest_chunks, .number = moderate},
    {"the largest squares that there are", .fill = squares, .number = moderate},
    {"chunks of 100, any numbers", {.block = 100, .k = 7}, .refuses = 1},
    {"all of chunks of 7", {.block = 7, .k = 7}, .number = few_whole},
    {"chunks of 1024", {.block = 1024, .k = 32}, .number = gradient},
    {"chunks of 4096, half of them", {.block = 4096, .k = 2048}, .number = sparse},
    {"chunks of 675, large numbers", {.block = 675, .k = 200}, .number = large, .refuses = 1},
    {"pairs that fit or just do not", {.block = 2, .k = 2}, .number = huge, .refuses = 1},
    {"chunks of 4, many coefficients equal", {.block = 4, .k = 2}, .number = few_whole},
    {"squares of 6", {.block = 6, .k = 5, .dimensions = 2}, .number = gradient},
    {"squares of 28, large numbers", {.block = 28, .k = 50, .dimensions = 2}, .number = large, .refuses = 1},
    {"squares of 64", {.block = 64, .k = 32, .dimensions = 2}, .number = gradient},
    {"squares of 66, any numbers", {.block = 66, .k = 40, .dimensions = 2}, .refuses = 1},
    {"squares of 128, half of them", {.block = 128, .k = 8192, .dimensions = 2}, .number = sparse});
