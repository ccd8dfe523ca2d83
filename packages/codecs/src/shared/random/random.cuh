// random.h on a GPU. One block of Philox serves elements i, i + 16, i + 32 and i + 48 of 64, so a lane does those four.
#ifndef TERSE_RANDOM_CUH
#define TERSE_RANDOM_CUH
#include "launch.cuh"

struct draws {
    uint64_t seed, step, index;  // index: of x[0], a multiple of 64

    // word[k] is that of element 64 `group` + j + 16 k of x.
    __device__ void words(size_t group, unsigned j, unsigned (&word)[4]) const {
        const uint64_t c = (index / 64 + group) * 16 + j;
        unsigned c0 = (unsigned)c, c1 = (unsigned)(c >> 32), c2 = (unsigned)step, c3 = (unsigned)(step >> 32);
        unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
#pragma unroll
        for (int round = 0; round < 10; round++) {
            const uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
            const unsigned n0 = (unsigned)(b >> 32) ^ c1 ^ k0, n2 = (unsigned)(a >> 32) ^ c3 ^ k1;
            c1 = (unsigned)b, c3 = (unsigned)a, c0 = n0, c2 = n2;
            k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
        }
        word[0] = c0, word[1] = c1, word[2] = c2, word[3] = c3;
    }
};

// True with probability p, 0 <= p <= 1.
__device__ inline bool below(unsigned word, double p) { return as_double(word >> 1) < p * 0x1p31; }

#endif
