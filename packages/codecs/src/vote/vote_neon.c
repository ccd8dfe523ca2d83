#include <arm_neon.h>
#include <string.h>

#include "vote.h"

typedef uint64x2_t word;  // 128 lanes

static inline word full_add(word *sum, word a, word b) {
    const word half = veorq_u64(*sum, a);
    const word carry = vbslq_u64(half, b, a);  // where two agree, they are the carry; else the third decides
    *sum = veorq_u64(half, b);
    return carry;
}

static inline word load(const uint8_t *from, size_t bytes) {
    if (bytes >= 16) return vreinterpretq_u64_u8(vld1q_u8(from));
    uint8_t padded[16] = {0};
    memcpy(padded, from, bytes);
    return vreinterpretq_u64_u8(vld1q_u8(padded));
}

#include "vote_words.h"

TERSE_VOTE(neon)
