// Encoding, in parts that several threads take, and the scales alone.
#include "../../../packages/codecs/src/shared/overlap.h"
#include "../../../packages/codecs/src/shared/scale-groups/scale_groups.h"
#include "calls.h"
#include "terse/parallel.h"

void terse_codecs_use_threads(unsigned threads) { terse_parallel_use(threads); }

typedef struct encoding {
    const terse_codec *codec;
    uint8_t *wire;
    const float *x;
    size_t n;
    const terse_codec_options *options;
    atomic_size_t accepted;
} encoding;

static void encode_part(void *context, size_t begin, size_t end) {
    encoding *e = context;
    const size_t good = e->codec->encode(e->wire, e->x, e->n, e->options, begin, end);
    if (good < end) terse_lower(&e->accepted, good);
}

terse_codec_status terse_encode_checked(const terse_codec *codec, uint8_t *wire, const float *x, size_t n,
                                        const terse_codec_options *o, size_t *bad) {
    const int at_once = codec->encode_at_once && !o->units && terse_scale_group_count(n, o) == 1;
    size_t accepted = !at_once && codec->prepare ? codec->prepare(wire, x, n, o) : n;
    if (at_once) accepted = codec->encode_at_once(wire, x, n, o);
    else if (accepted == n && codec->whole) accepted = codec->encode(wire, x, n, o, 0, n);
    else if (accepted == n) {
        encoding e = {codec, wire, x, n, o, n};
        terse_parallel(n, CUT, encode_part, &e);
        accepted = atomic_load(&e.accepted);
    }
    return accepted == n ? TERSE_CODEC_OK : terse_refusal(accepted, x[accepted], bad);
}

terse_codec_status terse_codec_encode(const terse_codec *codec, uint8_t *wire, size_t wire_bytes, const float *x,
                                      size_t n, const terse_codec_options *o, size_t *bad) {
    const terse_codec_status status = terse_check_encoding(codec, wire, wire_bytes, x, n, o);
    return status == TERSE_CODEC_OK ? terse_encode_checked(codec, wire, x, n, o, bad) : status;
}

terse_codec_status terse_codec_scales(const terse_codec *codec, float *scales, size_t count, const float *x, size_t n,
                                      const terse_codec_options *o, size_t *bad) {
    const terse_codec_status status = terse_check(codec, n, o);
    if (status != TERSE_CODEC_OK) return status;
    if (!codec->scales) return TERSE_CODEC_NOT_TAKEN;
    if (count != terse_scale_group_count(n, o)) return TERSE_CODEC_BAD_LENGTH;
    if ((uintptr_t)x % sizeof(float) || (uintptr_t)scales % sizeof(float)) return TERSE_CODEC_MISALIGNED;
    if (terse_overlap(scales, count * sizeof(float), x, n * sizeof(float))) return TERSE_CODEC_OVERLAP;
    const size_t accepted = codec->scales((uint8_t *)scales, x, n, o);
    return accepted == n ? TERSE_CODEC_OK : terse_refusal(accepted, x[accepted], bad);
}
