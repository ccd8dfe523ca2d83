// The values of the kept elements on the wire: as they are, halves, codes of 2 bits and a table, or signs.
#ifndef TERSE_TOP_K_KEPT_VALUES_CUH
#define TERSE_TOP_K_KEPT_VALUES_CUH
#include "codecs/f16/f16.cuh"
#include "search.cuh"
#include "shared/reductions/reductions.cuh"

// What a code of 2 bits, or of a sign, stands for.
struct meaning {
    double mean, low, high;
    unsigned long long counts[4];

    __device__ unsigned bin_of(float c) const {
        return (unsigned)((double)c >= low) + (unsigned)((double)c >= mean) + (unsigned)((double)c >= high);
    }
};

// *bad = the first kept element that no half can be.
template <class Index>
__global__ void __launch_bounds__(THREADS)
    top_k_halves(uint8_t *values, const float *kept, const Index *chosen, size_t k, const search *s, uint64_t *bad) {
    if (!s->chosen) return;
    for (size_t j = first_thread(); j < k; j += all_threads()) {
        const unsigned bits = __float_as_uint(kept[j]), half = f16_half::of(bits);
        if ((bits & 0x7fffffffu) > f16_half::LARGEST) refuse(bad, (size_t)chosen[j]);
        values[2 * j] = (uint8_t)half, values[2 * j + 1] = (uint8_t)(half >> 8);
    }
}

// One warp: the mean, and then the borders of the bins beside it.
__global__ void top_k_mean(meaning *m, const double *partials, slots s) {
    const double sum = sum_of_group(partials, s, 0);
    if (lane_of_warp() == 0) m->mean = sum / (double)s.in.n;
}

__global__ void top_k_borders(meaning *m, const double *partials, slots s) {
    const double reach = 1.5 * sqrt(sum_of_group(partials, s, 0) / (double)s.in.n);
    if (lane_of_warp() == 0) m->low = m->mean - reach, m->high = m->mean + reach;
}

// The sums of the four bins, each in the order of sum_slots: that of bin q of a slot is partials[q * slots + slot].
__global__ void __launch_bounds__(SUM_THREADS)
    top_k_sum_bins(double *partials, meaning *m, const float *kept, slots s, const search *found) {
    if (!found->chosen) return;
    const unsigned j = threadIdx.x % 16, half = 0xffffu << (lane_of_warp() & 16);
    for (size_t slot = first_thread() / 16; slot < s.count; slot += all_threads() / 16) {
        size_t begin, end;
        s.span(slot, &begin, &end);
        double partial[4] = {};
        unsigned counts[4] = {};
        for (size_t i = begin + j; i < end; i += 16) {
            const float c = kept[i];
            const unsigned bin = m->bin_of(c);
#pragma unroll
            for (unsigned q = 0; q < 4; q++) partial[q] += bin == q ? (double)c : 0.0, counts[q] += bin == q;
        }
#pragma unroll
        for (unsigned q = 0; q < 4; q++) {
#pragma unroll
            for (unsigned stride = 8; stride; stride /= 2) {
                const double other = __shfl_down_sync(half, partial[q], stride, 16);
                if (j < stride) partial[q] += other;
            }
            if (j == 0) partials[q * s.count + slot] = partial[q];
            if (counts[q]) atomicAdd(&m->counts[q], (unsigned long long)counts[q]);
        }
    }
}

// One warp.
__global__ void top_k_table(uint8_t *table, const double *partials, const meaning *m, slots s) {
    for (unsigned q = 0; q < 4; q++) {
        const double sum = sum_of_group(partials + q * s.count, s, 0);
        if (lane_of_warp() == 0) put_scale(table, q, m->counts[q] ? (float)(sum / (double)m->counts[q]) : 0.0f);
    }
}

__global__ void top_k_magnitude(uint8_t *table, const double *partials, slots s) {
    const double sum = sum_of_group(partials, s, 0);
    if (lane_of_warp() == 0) put_scale(table, 0, (float)(sum / (double)s.in.n));
}

// A lane writes a byte: four codes of 2 bits, or eight signs.
__global__ void __launch_bounds__(THREADS)
    top_k_codes(uint8_t *values, const float *kept, size_t k, unsigned bits, const meaning *m, const search *s) {
    if (!s->chosen) return;
    const unsigned in_byte = 8 / bits;
    for (size_t byte = first_thread(); byte * in_byte < k; byte += all_threads()) {
        unsigned codes = 0;
        for (unsigned i = 0; i < in_byte && byte * in_byte + i < k; i++) {
            const float c = kept[byte * in_byte + i];
            codes |= (bits == 2 ? m->bin_of(c) : (unsigned)(c >= 0.0f)) << bits * i;
        }
        values[byte] = (uint8_t)codes;
    }
}

// A wire, from which a value is read. bits: of a value.
struct kept_on_wire {
    const uint8_t *table, *values;
    unsigned bits;

    __device__ float at(size_t j) const {
        if (bits == 32) return float_on_wire(values + 4 * j);
        if (bits == 16) return f16_half::value(values[2 * j] | (unsigned)values[2 * j + 1] << 8);
        if (bits == 2) return scale_on_wire(table, values[j / 4] >> 2 * (j % 4) & 3);
        const float mean = scale_on_wire(table, 0);
        return values[j / 8] >> j % 8 & 1 ? mean : -mean;
    }
    // Whether encoders write the table and the pad bits.
    __device__ bool is_good(size_t k) const {
        for (unsigned q = 0; q < (bits == 2 ? 4 : bits == 1 ? 1 : 0); q++) {
            const unsigned of = __float_as_uint(scale_on_wire(table, q));
            if ((bits == 1 ? of : of & 0x7fffffffu) >= INFINITE) return false;
        }
        const unsigned used = (unsigned)(k * bits % 8);
        return used == 0 || values[k * bits / 8] >> used == 0;
    }
    __device__ bool is_finite(size_t j) const {
        if (bits == 16)
            return ((values[2 * j] | (unsigned)values[2 * j + 1] << 8) & TERSE_F16_INFINITE) != TERSE_F16_INFINITE;
        return bits < 16 || magnitude_bits(at(j)) < INFINITE;
    }
};

#endif
