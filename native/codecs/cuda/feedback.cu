#include "feedback.cuh"

constexpr unsigned ADDED = 4 * 4 * WARP;  // floats of a warp's unit: 8 loads of 16 bytes per lane are on their way at
                                          // once, 4 of each array

template <bool ALIGNED>
__global__ void __launch_bounds__(256, 4)
    find_not_finite(const float *error, const float *x, float decay, size_t n, uint64_t *bad, uint64_t *bad_sum) {
    const unsigned lane = lane_of_warp();
    for (size_t base = first_warp() * ADDED; base < n; base += all_warps() * ADDED) {
        const size_t end = base + ADDED < n ? base + ADDED : n;
        unsigned most = 0, most_sum = 0;
        const auto look = [&](float added, float to) {
            most = larger(most, magnitude_bits(added)), most_sum = larger(most_sum, magnitude_bits(decay * to + added));
        };
        if (ALIGNED && base + ADDED <= n) {
            float4 e[4], v[4];
#pragma unroll
            for (unsigned t = 0; t < 4; t++)
                e[t] = ((const float4 *)(error + base))[t * WARP + lane],
                v[t] = ((const float4 *)(x + base))[t * WARP + lane];
#pragma unroll
            for (unsigned t = 0; t < 4; t++)
                look(v[t].x, e[t].x), look(v[t].y, e[t].y), look(v[t].z, e[t].z), look(v[t].w, e[t].w);
        } else {
            for (size_t i = base + lane; i < end; i += WARP) look(x[i], error[i]);
        }
        if (most >= INFINITE) refuse_first(bad, x, base, end);
        for (size_t i = base; most_sum >= INFINITE && i < end; i++)
            if (magnitude_bits(decay * error[i] + x[i]) >= INFINITE) {
                refuse(bad_sum, i);
                break;
            }
    }
}

// error = decay error + x, or back to what it was.
template <bool PLUS, bool ALIGNED>
__device__ void change_error(float *error, const float *x, float decay, size_t n) {
    const unsigned lane = lane_of_warp();
    const auto changed = [decay](float before, float by) { return PLUS ? decay * before + by : (before - by) / decay; };
    for (size_t base = first_warp() * ADDED; base < n; base += all_warps() * ADDED) {
        if (ALIGNED && base + ADDED <= n) {
            float4 e[4], v[4];
#pragma unroll
            for (unsigned t = 0; t < 4; t++)
                e[t] = ((const float4 *)(error + base))[t * WARP + lane],
                v[t] = ((const float4 *)(x + base))[t * WARP + lane];
#pragma unroll
            for (unsigned t = 0; t < 4; t++)
                ((float4 *)(error + base))[t * WARP + lane] = make_float4(
                    changed(e[t].x, v[t].x), changed(e[t].y, v[t].y), changed(e[t].z, v[t].z), changed(e[t].w, v[t].w));
        } else {
            for (size_t i = base + lane; i < n && i < base + ADDED; i += WARP) error[i] = changed(error[i], x[i]);
        }
    }
}

template <bool ALIGNED>
__global__ void __launch_bounds__(256, 4)
    add_x(float *error, const float *x, float decay, size_t n, const uint64_t *bad) {
    if (*bad == TERSE_CODEC_CUDA_GOOD) change_error<true, ALIGNED>(error, x, decay, n);
}

template <bool ALIGNED>
__global__ void __launch_bounds__(256, 4)
    take_x_away(float *error, const float *x, float decay, size_t n, const uint64_t *bad, const uint64_t *refused) {
    if (*bad == TERSE_CODEC_CUDA_GOOD && *refused != TERSE_CODEC_CUDA_GOOD)
        change_error<false, ALIGNED>(error, x, decay, n);
}

terse_codec_status add_to_error(float *error, const float *x, float decay, size_t n, uint64_t *bad, uint64_t *bad_sum,
                                void *stream) {
    const bool aligned = multiples_of(16, error, x);
    const size_t blocks = divided_up(n, 8 * ADDED);
    terse_codec_status status = launch(aligned ? find_not_finite<true> : find_not_finite<false>, blocks, 256, stream,
                                       error, x, decay, n, bad, bad_sum);
    if (status == TERSE_CODEC_OK) status = launch(refuse_too, 1, WARP, stream, bad, bad_sum);
    return status != TERSE_CODEC_OK
               ? status
               : launch(aligned ? add_x<true> : add_x<false>, blocks, 256, stream, error, x, decay, n, bad);
}

// If an element was refused earlier, the error was encoded without x. Few blocks, because there is nearly always
// nothing to do.
terse_codec_status settle_error(float *error, const float *x, float decay, size_t n, uint64_t *bad,
                                const uint64_t *refused, void *stream) {
    constexpr size_t MOST = 1024;
    const size_t blocks = divided_up(n, 8 * ADDED);
    const terse_codec_status status = launch(multiples_of(16, error, x) ? take_x_away<true> : take_x_away<false>,
                                             blocks < MOST ? blocks : MOST, 256, stream, error, x, decay, n, bad,
                                             refused);
    return status != TERSE_CODEC_OK ? status : launch(refuse_too, 1, WARP, stream, bad, refused);
}
