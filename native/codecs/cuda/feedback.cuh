// The steps of error feedback around encode and decode_add, for every codec. x (n), error (n).
//
//   find     *bad = the first x that is not finite, else the first such decay error + x; if there is one, the error
//   stays as
//            it is
//   add      error = decay error + x
//   (encode the error, and write what it refuses to *refused)
//   settle   where it refused: error = (error - x) / decay, *bad = *refused
//   (decode_add with scale -1, which does nothing where *bad says so)
#ifndef TERSE_FEEDBACK_CUH
#define TERSE_FEEDBACK_CUH
#include "launch.cuh"

terse_codec_status add_to_error(float *error, const float *x, float decay, size_t n, uint64_t *bad, uint64_t *bad_sum,
                                void *stream);
terse_codec_status settle_error(float *error, const float *x, float decay, size_t n, uint64_t *bad,
                                const uint64_t *refused, void *stream);

#endif
