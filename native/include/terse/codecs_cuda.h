// The codecs of terse/codecs.h on an NVIDIA GPU: the same bytes and the same sums, bit for bit.
//
// Every call enqueues its work on a stream and returns: no call waits, allocates, or reads device memory on the host,
// but those at the end, which are for wires in host memory.
// wire, x, error, sum, hold, votes, workspace and bad are device memory. options, its segments and units (in pageable
// memory) and the lists of votes and planes are read on the host before the call returns. The library,
// libterse_codecs_cuda.so, links no driver: open it if dlopen("libcuda.so.1") succeeds.
//
//     const terse_codec_cuda *sign;
//     terse_codec_cuda_find(&sign, "sign");
//     terse_codec_options options = TERSE_CODEC_OPTIONS;
//     options.zero = TERSE_ZERO_PLUS;
//     size_t room;
//     terse_codec_cuda_workspace_bytes(sign, n, &options, &room);   // once; `workspace` then serves one call at a time
//     terse_codec_cuda_encode(sign, wire, wire_bytes, x, n, &options, workspace, room, bad, stream);
//     terse_codec_cuda_decode_add(sign, sum, n, wire, wire_bytes, &options, workspace, room, bad, stream);
#ifndef TERSE_CODECS_CUDA_H
#define TERSE_CODECS_CUDA_H
#include "terse/codecs.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TERSE_CODECS_CUDA_ABI 3

// The TERSE_CODECS_CUDA_ABI that the library was built with. Compare it with the header's before anything else.
TERSE_API uint32_t terse_codecs_cuda_abi(void);

// TERSE_CODEC_OK if the current device can run these kernels, else TERSE_CODEC_UNAVAILABLE.
TERSE_API terse_codec_status terse_codecs_cuda_available(void);

// CUDA's message for the last TERSE_CODEC_UNAVAILABLE of this thread. Never NULL.
TERSE_API const char *terse_codecs_cuda_error(void);

// The value of *bad if nothing was refused.
#define TERSE_CODEC_CUDA_GOOD UINT64_MAX

// One codec. The functions of the table do not check their arguments; call them through terse_codec_cuda_encode and its
// siblings. `stream` is a cudaStream_t, `options` has its segments and units on the host.
typedef struct terse_codec_cuda {
    const terse_codec *definition;  // its scalar implementation: name, what it takes, how long its wires are
    size_t (*workspace_bytes)(size_t n, const terse_codec_options *options);  // NULL: it needs none
    terse_codec_status (*encode)(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options,
                                 void *workspace, uint64_t *bad, void *stream);
    // Does nothing if *bad is not TERSE_CODEC_CUDA_GOOD when the kernel starts.
    terse_codec_status (*decode_add)(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options,
                                     void *workspace, uint64_t *bad, void *stream);
} terse_codec_cuda;

// *codec is set only on TERSE_CODEC_OK; TERSE_CODEC_UNKNOWN where no codec with kernels has this name.
TERSE_API terse_codec_status terse_codec_cuda_find(const terse_codec_cuda **codec, const char *name);

// Every codec that has kernels. NULL past the end.
TERSE_API const terse_codec_cuda *terse_codec_cuda_at(size_t i);

// *bytes = the bytes that n floats take on the wire.
TERSE_API terse_codec_status terse_codec_cuda_wire_bytes(const terse_codec_cuda *codec, size_t n,
                                                         const terse_codec_options *options, size_t *bytes);

// *bytes = the device memory, a multiple of 8 from an address that is one, that encode, encode_with_feedback and
// decode_add work in.
TERSE_API terse_codec_status terse_codec_cuda_workspace_bytes(const terse_codec_cuda *codec, size_t n,
                                                              const terse_codec_options *options, size_t *bytes);

// Writes x to the wire. When the stream has finished, *bad is TERSE_CODEC_CUDA_GOOD, or the index of the first refused
// element (x[*bad] is not finite, or does not fit) and the wire is undefined. With any status but TERSE_CODEC_OK
// nothing was enqueued; after TERSE_CODEC_UNAVAILABLE, an error of CUDA, a part may have been.
TERSE_API terse_codec_status terse_codec_cuda_encode(const terse_codec_cuda *codec, uint8_t *wire, size_t wire_bytes,
                                                     const float *x, size_t n, const terse_codec_options *options,
                                                     void *workspace, size_t workspace_bytes, uint64_t *bad,
                                                     void *stream);

// Error feedback: error += x, wire = encode(error), error -= decode(wire). *bad as in encode. If an element is refused,
// error keeps its old values, up to the rounding of an addition and a subtraction if error[*bad] + x[*bad] is finite.
// Elements of x that are not finite are reported first, then sums that are not finite, then sums that do not fit.
TERSE_API terse_codec_status terse_codec_cuda_encode_with_feedback(const terse_codec_cuda *codec, uint8_t *wire,
                                                                   size_t wire_bytes, const float *x, float *error,
                                                                   size_t n, const terse_codec_options *options,
                                                                   void *workspace, size_t workspace_bytes,
                                                                   uint64_t *bad, void *stream);

// sum += scale * decode(wire). When the stream has finished, *bad is TERSE_CODEC_CUDA_GOOD; any other value: the wire
// was bad (TERSE_CODEC_BAD_WIRE), and sum keeps its old values.
TERSE_API terse_codec_status terse_codec_cuda_decode_add(const terse_codec_cuda *codec, float *sum, size_t n,
                                                         const uint8_t *wire, size_t wire_bytes,
                                                         const terse_codec_options *options, void *workspace,
                                                         size_t workspace_bytes, uint64_t *bad, void *stream);

// Majority votes over packed signs, as in terse_vote: absent ranks are NULL, a result may be one of the votes.
TERSE_API terse_codec_status terse_vote_cuda_majority(uint8_t *out, const uint8_t *const *votes, size_t ranks, size_t n,
                                                      terse_zero tie, void *stream);
TERSE_API terse_codec_status terse_vote_cuda_majority_or_zero(uint8_t *plus, uint8_t *nonzero,
                                                              const uint8_t *const *votes, size_t ranks, size_t n,
                                                              void *stream);
TERSE_API terse_codec_status terse_vote_cuda_tally(uint8_t *const *planes, const uint8_t *const *votes, size_t ranks,
                                                   size_t n, void *stream);

// For wires and masks in host memory. x, error and to are memory of the CUDA device of this number. These calls run in
// its default stream and wait for it. One of them runs at a time, in memory of the device that is kept for the next
// one.

// As terse_codec_cuda_encode, or with error as terse_codec_cuda_encode_with_feedback. TERSE_CODEC_NOT_FINITE, and *bad,
// where an element is refused.
TERSE_API terse_codec_status terse_codec_cuda_encode_to_host(const terse_codec_cuda *codec, int device, uint8_t *wire,
                                                             size_t wire_bytes, const float *x, float *error, size_t n,
                                                             const terse_codec_options *options, size_t *bad);

// As terse_codec_scales; TERSE_CODEC_NOT_FINITE, and *bad, where an element is refused.
TERSE_API terse_codec_status terse_codec_cuda_scales_to_host(const terse_codec_cuda *codec, int device, float *scales,
                                                             size_t count, const float *x, size_t n,
                                                             const terse_codec_options *options, size_t *bad);

// to = scale * decode(wire), or with `adds` to += it. After TERSE_CODEC_BAD_WIRE `to` is undefined, or with `adds` as
// it was.
TERSE_API terse_codec_status terse_codec_cuda_decode_from_host(const terse_codec_cuda *codec, int device, float *to,
                                                               size_t n, const uint8_t *wire, size_t wire_bytes,
                                                               const terse_codec_options *options, int adds);

// *value = *x
TERSE_API terse_codec_status terse_cuda_float_at(int device, const float *x, float *value);

#ifdef __cplusplus
}
#endif
#endif
