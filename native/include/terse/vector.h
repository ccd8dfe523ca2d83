// The words in which kernels are written once for all vector instructions. Internal to the kernels, no part of the ABI.
// vector_avx2.h, vector_avx512.h and vector_neon.h say them in one instruction set each, and end with this file.
// <kernel>_vector.h is a kernel's body. <kernel>_<instructions>.c includes the words, then the body.
//
//   vec        LANES floats, with + - * /
//              LOAD STORE SPLAT ABS SQRT FMA(a, b, sum)
//              LIMIT(x, most)              x, of at most this magnitude
//              LOAD_F16 STORE_F16          from and to binary16
//              LOOK_UP(TABLE(four), ints)  of four floats those that the lower two bits choose
//              LOOK_UP_8(EIGHT_FLOATS(eight), ints)   of eight those that the lower three bits choose
//   ints       LANES int32_t, with + - & | ^ << >>; (ints)x are the bits of x
//              SPLAT_INTS MOST_INTS LEAST_INTS, LARGEST_INT of all lanes, ANY: whether a bit is 1
//              LOAD_INT8 STORE_INT8 LOAD_UINT16 STORE_UINT16
//              ROUND(vec), FLOATS(ints)    to the nearest whole numbers, and back
//   mask       an answer a lane; a comparison with NaN is false
//              ABOVE NOT_BELOW EQUAL INTS_ABOVE BUT_NOT
//              CHOOSE(mask, yes, no)
//              ADD_WHERE(mask, a, b)       a + b where the mask is true, else a
//              COUNT(mask, ints)           one more where it is true
//   a word     an answer a bit, 64 of them in a uint64_t
//              WORD(masks)                 of VECTORS masks
//              LANES_OF(word, k)           bits LANES k .. LANES (k + 1) - 1 as a mask, for CHOOSE and ADD_WHERE alone
//   wide       LANES / 2 doubles, with + - * /
//              LOAD_WIDE (from floats) STORE_WIDE SPLAT_WIDE WIDE_ABS, WIDE_LIMIT(x, most): min(|x|, most)
//              LOWER UPPER (of a vec) LOWER_INTS UPPER_INTS
//              NARROW ROUND_WIDE           floats, and nearest whole numbers, of a lower and an upper half
//              TRUNCATE_WIDE(lower, upper) ints, rounded towards 0
//              WIDE_BELOW                  a wide_mask, for WIDE_CHOOSE
//              WIDE_ABOVE(a, b, c, d)      a > c in the lower half of a mask, b > d in the upper
//   longs      LANES / 2 uint64_t, with + - & | ^ << >>; (longs)x are the bits of x
//              CEIL(wide), MULTIPLY(longs, by): of the lower 32 bits
//              LOWER_BITS UPPER_BITS       32 bits of each lane of a lower and an upper half, as ints
//   bytes      64 bytes
//              BYTES(VECTORS ints)         from -128 to 127 each, saturated beyond
//              ADD_BYTES(bytes, byte) LIMIT_BYTES(bytes, magnitude) STORE_BYTES
//              OR_WHERE(bytes, word, byte), DIFFER(bytes, bytes): a word
#ifndef TERSE_VECTOR_H
#define TERSE_VECTOR_H
#include <stdint.h>
#include <string.h>

#define TERSE_JOIN_(a, b) a##_##b
#define TERSE_JOIN(a, b) TERSE_JOIN_(a, b)
#define TERSE_TEXT_(name) #name
#define TERSE_TEXT(name) TERSE_TEXT_(name)
#define TERSE_NAMED(name) TERSE_JOIN(name, INSTRUCTIONS)  // such as terse_sign_avx2
#define TERSE_IMPLEMENTATION TERSE_TEXT(INSTRUCTIONS)

enum { VECTORS = 64 / LANES };  // in a round
#define FLOATS(whole) __builtin_convertvector(whole, vec)
#define EACH_VECTOR _Pragma("GCC unroll 16") for (size_t k = 0; k < VECTORS; k++)

// 64 packed signs.
static inline uint64_t terse_load_word(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

static inline void terse_store_word(uint8_t *bytes, uint64_t word) { memcpy(bytes, &word, 8); }

#endif
