// The calls of codecs that keep the error of a momentum in one pass.
#include "../../../packages/codecs/src/shared/overlap.h"
#include "calls.h"

static terse_codec_status check_compensating(const terse_codec *codec, const uint8_t *wire, size_t wire_bytes,
                                             const float *error, size_t n, const terse_codec_options *o) {
    if (!codec->encode_momentum) return TERSE_CODEC_NOT_TAKEN;
    const terse_codec_status status = terse_check_buffers(codec, wire, wire_bytes, error, n, o);
    if (status != TERSE_CODEC_OK) return status;
    if (o->zero != TERSE_ZERO_PLUS) return TERSE_CODEC_BAD_ZERO;
    if (o->block || o->segments) return TERSE_CODEC_NOT_TAKEN;
    return terse_meets_options(error, n * sizeof(float), n, o) ? TERSE_CODEC_OVERLAP : TERSE_CODEC_OK;
}

terse_codec_status terse_codec_encode_momentum(const terse_codec *codec, uint8_t *wire, size_t wire_bytes,
                                               const float *m, const float *g, float *error, size_t n,
                                               const terse_momentum *weights, const terse_codec_options *o,
                                               size_t *bad) {
    const terse_codec_status status = check_compensating(codec, wire, wire_bytes, error, n, o);
    if (status != TERSE_CODEC_OK) return status;
    const float *const read[] = {m, g};
    for (size_t k = 0; k < 2; k++) {
        if ((uintptr_t)read[k] % sizeof(float)) return TERSE_CODEC_MISALIGNED;
        if (terse_overlap(error, n * sizeof(float), read[k], n * sizeof(float)) ||
            terse_overlap(wire, wire_bytes, read[k], n * sizeof(float)))
            return TERSE_CODEC_OVERLAP;
    }
    if (n == 0) return TERSE_CODEC_OK;  // its wire has no scale
    const size_t accepted = codec->encode_momentum(wire, m, g, error, n, weights, o);
    return accepted == n ? TERSE_CODEC_OK : terse_refusal(accepted, error[accepted], bad);
}

terse_codec_status terse_codec_encode_sum(const terse_codec *codec, uint8_t *wire, size_t wire_bytes,
                                          const uint8_t *const *wires, size_t count, float *error, size_t n, float sent,
                                          const terse_codec_options *o, size_t *bad) {
    const terse_codec_status status = check_compensating(codec, wire, wire_bytes, error, n, o);
    if (status != TERSE_CODEC_OK) return status;
    if (!isfinite(o->scale)) return TERSE_CODEC_BAD_SCALE;
    if (n == 0) return TERSE_CODEC_OK;
    for (size_t r = 0; r < count; r++) {
        if (terse_overlap(error, n * sizeof(float), wires[r], wire_bytes) ||
            terse_overlap(wire, wire_bytes, wires[r], wire_bytes))
            return TERSE_CODEC_OVERLAP;
        if (!codec->is_good(wires[r], n, o, 0, n)) return TERSE_CODEC_BAD_WIRE;
    }
    const size_t accepted = codec->encode_sum(wire, wires, count, error, n, sent, o);
    return accepted == n ? TERSE_CODEC_OK : terse_refusal(accepted, error[accepted], bad);
}
