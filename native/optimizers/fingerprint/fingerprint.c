// A 64-bit hash of a vector's bits and their order, to compare ranks. It is not safe against an adversary. Eight
// independent accumulators of xxHash's 64-bit round (Collet, "xxHash fast digest algorithm", description of the XXH64
// format), so that multiplications overlap and the hash runs at memory speed.
#include <string.h>

#include "terse/optimizers.h"

enum { ACCUMULATORS = 8 };
static const uint64_t P1 = 0x9E3779B185EBCA87u, P2 = 0xC2B2AE3D27D4EB4Fu, P3 = 0x165667B19E3779F9u;

static uint64_t rotated(uint64_t x, int by) { return x << by | x >> (64 - by); }

static uint64_t round_of(uint64_t accumulator, uint64_t word) { return rotated(accumulator + word * P2, 31) * P1; }

uint64_t terse_fingerprint(const float *x, size_t n) {
    uint64_t accumulators[ACCUMULATORS];
    for (int j = 0; j < ACCUMULATORS; j++) accumulators[j] = P1 * (uint64_t)(j + 1);
    size_t i = 0;
    for (; i + 2 * ACCUMULATORS <= n; i += 2 * ACCUMULATORS) {
        uint64_t words[ACCUMULATORS];
        memcpy(words, x + i, sizeof words);
        for (int j = 0; j < ACCUMULATORS; j++) accumulators[j] = round_of(accumulators[j], words[j]);
    }
    for (; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, 4);
        accumulators[i % ACCUMULATORS] = round_of(accumulators[i % ACCUMULATORS], bits);
    }
    uint64_t hash = (uint64_t)n * P3;
    for (int j = 0; j < ACCUMULATORS; j++) hash = round_of(hash ^ accumulators[j], P3);
    hash = (hash ^ hash >> 33) * P2;
    hash = (hash ^ hash >> 29) * P3;
    return hash ^ hash >> 32;
}
