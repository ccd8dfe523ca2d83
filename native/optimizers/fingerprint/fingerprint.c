// A 64-bit number that changes when any bit of a vector does, or when two of its elements change places. For comparing ranks,
// not against an adversary. Eight independent lanes of xxHash's 64-bit round (Collet, "xxHash fast digest algorithm", doc of
// the XXH64 format), so that the multiplications overlap and memory sets the pace.
#include <string.h>

#include "terse/optimizers.h"

enum { LANES = 8 };
static const uint64_t P1 = 0x9E3779B185EBCA87u, P2 = 0xC2B2AE3D27D4EB4Fu, P3 = 0x165667B19E3779F9u;

static uint64_t rotated(uint64_t x, int by) { return x << by | x >> (64 - by); }

static uint64_t round_of(uint64_t lane, uint64_t word) { return rotated(lane + word * P2, 31) * P1; }

uint64_t terse_fingerprint(const float *x, size_t n) {
    uint64_t lanes[LANES];
    for (int j = 0; j < LANES; j++) lanes[j] = P1 * (uint64_t)(j + 1);
    size_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        uint64_t words[LANES];
        memcpy(words, x + i, sizeof words);
        for (int j = 0; j < LANES; j++) lanes[j] = round_of(lanes[j], words[j]);
    }
    for (; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, 4);
        lanes[i % LANES] = round_of(lanes[i % LANES], bits);
    }
    uint64_t hash = (uint64_t)n * P3;
    for (int j = 0; j < LANES; j++) hash = round_of(hash ^ lanes[j], P3);
    hash = (hash ^ hash >> 33) * P2;
    hash = (hash ^ hash >> 29) * P3;
    return hash ^ hash >> 32;
}
