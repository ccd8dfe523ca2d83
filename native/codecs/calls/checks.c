// What every call checks before it calls into a codec's table.
#include "../../../packages/codecs/src/shared/overlap.h"
#include "calls.h"

static terse_codec_status check_scale_groups(size_t n, const terse_codec_options *o) {
    if (!o->segments) return o->segment_count ? TERSE_CODEC_BAD_SCALE_GROUPS : TERSE_CODEC_OK;
    if (o->block) return TERSE_CODEC_BAD_SCALE_GROUPS;
    size_t begin = 0;
    for (size_t s = 0; s < o->segment_count; s++) {
        if (o->segments[s] < begin) return TERSE_CODEC_BAD_SCALE_GROUPS;
        begin = o->segments[s];
    }
    return begin == n ? TERSE_CODEC_OK : TERSE_CODEC_BAD_SCALE_GROUPS;
}

terse_codec_status terse_check(const terse_codec *codec, size_t n, const terse_codec_options *o) {
    if (o->size != sizeof *o) return TERSE_CODEC_BAD_ABI;
    const uint32_t set = (o->hold ? TERSE_TAKES_HOLD : 0) | (o->block ? TERSE_TAKES_BLOCK : 0) |
                         (o->segments || o->segment_count ? TERSE_TAKES_SEGMENTS : 0) |
                         (o->bits ? TERSE_TAKES_BITS : 0) | (o->width || o->ranks > 1 ? TERSE_TAKES_FIELDS : 0) |
                         (o->unscaled ? TERSE_TAKES_UNSCALED : 0) | (o->units ? TERSE_TAKES_UNSCALED : 0) |
                         (o->levels ? TERSE_TAKES_LEVELS : 0) | (o->dimensions ? TERSE_TAKES_DIMENSIONS : 0) |
                         (o->side ? TERSE_TAKES_SIDE : 0) | (o->k ? TERSE_TAKES_K : 0) |
                         (o->clip != 0 ? TERSE_TAKES_CLIP : 0) | (o->indices ? TERSE_TAKES_INDICES : 0) |
                         (o->values ? TERSE_TAKES_VALUES : 0);
    if (set & ~codec->takes) return TERSE_CODEC_NOT_TAKEN;
    if (n > (size_t)1 << 48) return TERSE_CODEC_BAD_LENGTH;
    const terse_codec_status status = check_scale_groups(n, o);
    return status != TERSE_CODEC_OK || !codec->check ? status : codec->check(n, o);
}

int terse_meets_options(const void *written, size_t bytes, size_t n, const terse_codec_options *o) {
    return (o->hold && terse_overlap(written, bytes, o->hold, n / 8 + (n % 8 != 0))) ||
           (o->units && terse_overlap(written, bytes, o->units, o->unit_count * sizeof(float)));
}

terse_codec_status terse_check_buffers(const terse_codec *codec, const uint8_t *wire, size_t wire_bytes, const float *x,
                                       size_t n, const terse_codec_options *o) {
    const terse_codec_status status = terse_check(codec, n, o);
    if (status != TERSE_CODEC_OK) return status;
    if (codec->wire_bytes(n, o) != wire_bytes) return TERSE_CODEC_BAD_LENGTH;
    if ((uintptr_t)x % sizeof(float)) return TERSE_CODEC_MISALIGNED;
    if (terse_overlap(wire, wire_bytes, x, n * sizeof(float))) return TERSE_CODEC_OVERLAP;
    return terse_meets_options(wire, wire_bytes, n, o) ? TERSE_CODEC_OVERLAP : TERSE_CODEC_OK;
}

terse_codec_status terse_codec_wire_bytes(const terse_codec *codec, size_t n, const terse_codec_options *o,
                                          size_t *bytes) {
    const terse_codec_status status = terse_check(codec, n, o);
    if (status == TERSE_CODEC_OK) *bytes = codec->wire_bytes(n, o);
    return status;
}

terse_codec_status terse_check_encoding(const terse_codec *codec, const uint8_t *wire, size_t wire_bytes,
                                        const float *x, size_t n, const terse_codec_options *o) {
    const terse_codec_status status = terse_check_buffers(codec, wire, wire_bytes, x, n, o);
    if (status != TERSE_CODEC_OK) return status;
    if (codec->takes & TERSE_TAKES_ZERO && o->zero != TERSE_ZERO_MINUS && o->zero != TERSE_ZERO_PLUS)
        return TERSE_CODEC_BAD_ZERO;
    if (codec->takes & TERSE_TAKES_RANDOM && o->index % 64) return TERSE_CODEC_BAD_INDEX;
    return TERSE_CODEC_OK;
}
