// The codecs that have kernels, and the public calls, which check all arguments that the host can see.
#include <cmath>
#include <cstring>

#include "codec_lists.h"
#include "feedback.cuh"

#define DECLARE(codec, name) extern const terse_codec_cuda terse_##codec##_cuda;
#define AT(codec, name) \
    if (i-- == 0) return &terse_##codec##_cuda;

KERNELS(DECLARE)

uint32_t terse_codecs_cuda_abi(void) { return TERSE_CODECS_CUDA_ABI; }

const terse_codec_cuda *terse_codec_cuda_at(size_t i) {
    KERNELS(AT)
    return nullptr;
}

terse_codec_status terse_codec_cuda_find(const terse_codec_cuda **codec, const char *name) {
    for (size_t i = 0; const terse_codec_cuda *at = terse_codec_cuda_at(i); i++)
        if (!std::strcmp(at->definition->name, name)) return *codec = at, TERSE_CODEC_OK;
    return TERSE_CODEC_UNKNOWN;
}

const char *terse_codecs_cuda_error(void) { return cudaGetErrorString(last_cuda_error); }

// Multiples of 8, so that tables of 64-bit numbers lie well. Behind what the codec takes lies a word of error feedback.
static size_t workspace_bytes(const terse_codec_cuda *codec, size_t n, const terse_codec_options *o) {
    return (codec->workspace_bytes ? codec->workspace_bytes(n, o) : 0) + sizeof(uint64_t);
}

terse_codec_status terse_codec_cuda_wire_bytes(const terse_codec_cuda *codec, size_t n, const terse_codec_options *o,
                                               size_t *bytes) {
    return terse_codec_wire_bytes(codec->definition, n, o, bytes);
}

terse_codec_status terse_codec_cuda_workspace_bytes(const terse_codec_cuda *codec, size_t n,
                                                    const terse_codec_options *o, size_t *bytes) {
    size_t wire;
    const terse_codec_status status = terse_codec_wire_bytes(codec->definition, n, o, &wire);
    if (status == TERSE_CODEC_OK) *bytes = workspace_bytes(codec, n, o);
    return status;
}

struct span {
    const void *at;
    size_t bytes;
};

static bool overlap(const span &a, const span &b) {
    return a.bytes && b.bytes && (uintptr_t)a.at < (uintptr_t)b.at + b.bytes &&
           (uintptr_t)b.at < (uintptr_t)a.at + a.bytes;
}

static terse_codec_status check(const terse_codec_cuda *codec, const uint8_t *wire, size_t wire_bytes, const float *x,
                                size_t n, const terse_codec_options *o, const void *workspace, size_t room,
                                const uint64_t *bad) {
    size_t expected;
    const terse_codec_status status = terse_codec_wire_bytes(codec->definition, n, o, &expected);
    if (status != TERSE_CODEC_OK) return status;
    if (expected != wire_bytes || workspace_bytes(codec, n, o) > room) return TERSE_CODEC_BAD_LENGTH;
    if ((uintptr_t)x % sizeof(float) || (uintptr_t)workspace % 8 || (uintptr_t)bad % 8) return TERSE_CODEC_MISALIGNED;
    const span all[] = {{wire, wire_bytes},
                        {x, n * sizeof(float)},
                        {workspace, room},
                        {bad, sizeof *bad},
                        {o->hold, o->hold ? n / 8 + (n % 8 != 0) : 0}};
    for (const span &a : all)
        for (const span *b = all; b != &a; b++)
            if (overlap(a, *b)) return TERSE_CODEC_OVERLAP;
    return TERSE_CODEC_OK;
}

static terse_codec_status check_encoding(const terse_codec_cuda *codec, const uint8_t *wire, size_t wire_bytes,
                                         const float *x, size_t n, const terse_codec_options *o, const void *workspace,
                                         size_t room, const uint64_t *bad) {
    const terse_codec_status status = check(codec, wire, wire_bytes, x, n, o, workspace, room, bad);
    if (status != TERSE_CODEC_OK) return status;
    const uint32_t takes = codec->definition->takes;
    if (takes & TERSE_TAKES_ZERO && o->zero != TERSE_ZERO_MINUS && o->zero != TERSE_ZERO_PLUS)
        return TERSE_CODEC_BAD_ZERO;
    return takes & TERSE_TAKES_RANDOM && o->index % 64 ? TERSE_CODEC_BAD_INDEX : TERSE_CODEC_OK;
}

static terse_codec_status nothing_is_bad(uint64_t *bad, void *stream) {
    return terse_cuda_status(cudaMemsetAsync(bad, 0xff, sizeof *bad, (cudaStream_t)stream));
}

terse_codec_status terse_codec_cuda_encode(const terse_codec_cuda *codec, uint8_t *wire, size_t wire_bytes,
                                           const float *x, size_t n, const terse_codec_options *o, void *workspace,
                                           size_t room, uint64_t *bad, void *stream) {
    terse_codec_status status = check_encoding(codec, wire, wire_bytes, x, n, o, workspace, room, bad);
    if (status != TERSE_CODEC_OK) return status;
    status = nothing_is_bad(bad, stream);
    return status == TERSE_CODEC_OK ? codec->encode(wire, x, n, o, workspace, bad, stream) : status;
}

terse_codec_status terse_codec_cuda_encode_with_feedback(const terse_codec_cuda *codec, uint8_t *wire,
                                                         size_t wire_bytes, const float *x, float *error, size_t n,
                                                         const terse_codec_options *o, void *workspace, size_t room,
                                                         uint64_t *bad, void *stream) {
    terse_codec_status status = check_encoding(codec, wire, wire_bytes, error, n, o, workspace, room, bad);
    if (status != TERSE_CODEC_OK) return status;
    if (!(o->decay > 0 && o->decay <= 1)) return TERSE_CODEC_BAD_DECAY;
    if ((uintptr_t)x % sizeof(float)) return TERSE_CODEC_MISALIGNED;
    const span floats = {x, n * sizeof(float)};
    for (const span &other :
         {span{error, n * sizeof(float)}, span{wire, wire_bytes}, span{workspace, room}, span{bad, sizeof *bad}})
        if (overlap(floats, other)) return TERSE_CODEC_OVERLAP;
    uint64_t *const refused = (uint64_t *)((uint8_t *)workspace + workspace_bytes(codec, n, o)) - 1;
    terse_codec_options back = *o;
    back.scale = -1.0f;
    status = nothing_is_bad(bad, stream);
    if (status == TERSE_CODEC_OK) status = nothing_is_bad(refused, stream);
    if (status == TERSE_CODEC_OK) status = add_to_error(error, x, o->decay, n, bad, refused, stream);
    if (status == TERSE_CODEC_OK) status = nothing_is_bad(refused, stream);
    if (status == TERSE_CODEC_OK) status = codec->encode(wire, error, n, o, workspace, refused, stream);
    if (status == TERSE_CODEC_OK) status = settle_error(error, x, o->decay, n, bad, refused, stream);
    return status == TERSE_CODEC_OK ? codec->decode_add(error, wire, n, &back, workspace, bad, stream) : status;
}

terse_codec_status terse_codec_cuda_decode_add(const terse_codec_cuda *codec, float *sum, size_t n, const uint8_t *wire,
                                               size_t wire_bytes, const terse_codec_options *o, void *workspace,
                                               size_t room, uint64_t *bad, void *stream) {
    terse_codec_status status = check(codec, wire, wire_bytes, sum, n, o, workspace, room, bad);
    if (status != TERSE_CODEC_OK) return status;
    if (!std::isfinite(o->scale)) return TERSE_CODEC_BAD_SCALE;
    status = nothing_is_bad(bad, stream);
    return status == TERSE_CODEC_OK ? codec->decode_add(sum, wire, n, o, workspace, bad, stream) : status;
}
