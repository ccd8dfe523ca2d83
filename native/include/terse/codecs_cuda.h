// The codecs of terse/codecs.h on an NVIDIA GPU: the same bytes and the same sums, bit for bit.
//
// Every call puts its work into a stream and returns: nothing here waits, allocates, or looks at device memory. wire, x, error, sum, hold,
// votes, workspace and bad are device memory; options, its segments and units and the lists of votes and planes are read on the host, and
// may go when the call has returned; segments and units lie in pageable memory. The library, libterse_codecs_cuda.so, links no driver: open it where dlopen("libcuda.so.1") succeeds.
//
//     const terse_codec_cuda *sign;
//     terse_codec_cuda_find(&sign, "sign");
//     terse_codec_options options = TERSE_CODEC_OPTIONS;
//     options.zero = TERSE_ZERO_PLUS;
//     size_t room;
//     terse_codec_cuda_workspace_bytes(sign, n, &options, &room);       // once; `workspace` then serves one call at a time
//     terse_codec_cuda_encode(sign, wire, wire_bytes, x, n, &options, workspace, room, bad, stream);
//     terse_codec_cuda_decode_add(sign, sum, n, wire, wire_bytes, &options, workspace, room, bad, stream);
#ifndef TERSE_CODECS_CUDA_H
#define TERSE_CODECS_CUDA_H
#include "terse/codecs.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TERSE_CODECS_CUDA_ABI 2

// The TERSE_CODECS_CUDA_ABI that the library was built with. Compare it with the header's before anything else.
TERSE_API uint32_t terse_codecs_cuda_abi(void);

// TERSE_CODEC_OK where the current device runs these kernels, else TERSE_CODEC_UNAVAILABLE.
TERSE_API terse_codec_status terse_codecs_cuda_available(void);

// What CUDA said when a call of this thread last returned TERSE_CODEC_UNAVAILABLE. Never NULL.
TERSE_API const char *terse_codecs_cuda_error(void);

// *bad where nothing is bad.
#define TERSE_CODEC_CUDA_GOOD UINT64_MAX

// One codec. The functions of the table trust their arguments; call them through terse_codec_cuda_encode and its neighbours.
// `stream` is a cudaStream_t, `options` has its segments and units on the host.
typedef struct terse_codec_cuda {
    const terse_codec *definition;  // its scalar implementation: name, what it takes, how long its wires are
    size_t (*workspace_bytes)(size_t n, const terse_codec_options *options);  // NULL: it needs none
    terse_codec_status (*encode)(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, void *workspace,
                                 uint64_t *bad, void *stream);
    // Does nothing where *bad is not TERSE_CODEC_CUDA_GOOD when the stream comes to it.
    terse_codec_status (*decode_add)(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options, void *workspace,
                                     uint64_t *bad, void *stream);
} terse_codec_cuda;

// *codec is set only on TERSE_CODEC_OK; TERSE_CODEC_UNKNOWN where no codec with kernels has this name.
TERSE_API terse_codec_status terse_codec_cuda_find(const terse_codec_cuda **codec, const char *name);

// Every codec that has kernels. NULL past the end.
TERSE_API const terse_codec_cuda *terse_codec_cuda_at(size_t i);

// *bytes = the bytes that n floats take on the wire.
TERSE_API terse_codec_status terse_codec_cuda_wire_bytes(const terse_codec_cuda *codec, size_t n, const terse_codec_options *options, size_t *bytes);

// *bytes = the device memory, a multiple of 8 from an address that is one, that encode, encode_with_feedback and decode_add work in.
TERSE_API terse_codec_status terse_codec_cuda_workspace_bytes(const terse_codec_cuda *codec, size_t n, const terse_codec_options *options, size_t *bytes);

// Writes x to the wire. When the stream has done it, *bad is TERSE_CODEC_CUDA_GOOD; or the index of the first element that is
// refused, and the wire is undefined: x[*bad] is not finite, or does not fit. Any status but TERSE_CODEC_OK: nothing was put into the
// stream (but TERSE_CODEC_UNAVAILABLE: CUDA failed on the way).
TERSE_API terse_codec_status terse_codec_cuda_encode(const terse_codec_cuda *codec, uint8_t *wire, size_t wire_bytes, const float *x,
                                                     size_t n, const terse_codec_options *options, void *workspace,
                                                     size_t workspace_bytes, uint64_t *bad, void *stream);

// Error feedback: error += x, wire = encode(error), error -= decode(wire). *bad as encode has it; where it names an element, error is
// as it was, but for rounding where error[*bad] + x[*bad] is finite and was refused: x was added and taken away again. What is not
// finite is named first, and of that what is in x.
TERSE_API terse_codec_status terse_codec_cuda_encode_with_feedback(const terse_codec_cuda *codec, uint8_t *wire, size_t wire_bytes,
                                                                   const float *x, float *error, size_t n, const terse_codec_options *options,
                                                                   void *workspace, size_t workspace_bytes, uint64_t *bad, void *stream);

// sum += scale * decode(wire). When the stream has done it, *bad is TERSE_CODEC_CUDA_GOOD; or something else: the wire was bad
// (TERSE_CODEC_BAD_WIRE), and sum is as it was.
TERSE_API terse_codec_status terse_codec_cuda_decode_add(const terse_codec_cuda *codec, float *sum, size_t n, const uint8_t *wire,
                                                         size_t wire_bytes, const terse_codec_options *options, void *workspace,
                                                         size_t workspace_bytes, uint64_t *bad, void *stream);

// Elections over packed signs, as terse_vote has them: absent ranks are NULL, a result may be one of the votes.
TERSE_API terse_codec_status terse_vote_cuda_majority(uint8_t *out, const uint8_t *const *votes, size_t ranks, size_t n, terse_zero tie, void *stream);
TERSE_API terse_codec_status terse_vote_cuda_majority_or_zero(uint8_t *plus, uint8_t *nonzero, const uint8_t *const *votes, size_t ranks, size_t n, void *stream);
TERSE_API terse_codec_status terse_vote_cuda_tally(uint8_t *const *planes, const uint8_t *const *votes, size_t ranks, size_t n, void *stream);

#ifdef __cplusplus
}
#endif
#endif
