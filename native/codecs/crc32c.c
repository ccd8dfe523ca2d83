#include "crc32c.h"

#include <string.h>

// The remainders of the single bits of a byte. The remainder of a byte is the exclusive or of those of its bits.
#define BIT(i, k, remainder) ((i) >> (k) & 1 ? remainder##u : 0)
#define ROW(i)                                                                                      \
    BIT(i, 0, 0xF26B8303) ^ BIT(i, 1, 0xE13B70F7) ^ BIT(i, 2, 0xC79A971F) ^ BIT(i, 3, 0x8AD958CF) ^ \
        BIT(i, 4, 0x105EC76F) ^ BIT(i, 5, 0x20BD8EDE) ^ BIT(i, 6, 0x417B1DBC) ^ BIT(i, 7, 0x82F63B78)
#define ROWS_4(i) ROW(i), ROW((i) + 1), ROW((i) + 2), ROW((i) + 3)
#define ROWS_16(i) ROWS_4(i), ROWS_4((i) + 4), ROWS_4((i) + 8), ROWS_4((i) + 12)
#define ROWS_64(i) ROWS_16(i), ROWS_16((i) + 16), ROWS_16((i) + 32), ROWS_16((i) + 48)
static const uint32_t table[256] = {ROWS_64(0), ROWS_64(64), ROWS_64(128), ROWS_64(192)};

uint32_t terse_crc32c_by_table(const uint8_t *bytes, size_t length) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < length; i++) crc = table[(crc ^ bytes[i]) & 0xFF] ^ crc >> 8;
    return ~crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>
#define HAS_INSTRUCTION __builtin_cpu_supports("sse4.2")
#define WITH_INSTRUCTION __attribute__((target("sse4.2")))
#define EIGHT_BYTES(crc, word) (uint32_t)_mm_crc32_u64(crc, word)
#define ONE_BYTE(crc, byte) _mm_crc32_u8(crc, byte)
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define HAS_INSTRUCTION 1
#define WITH_INSTRUCTION
#define EIGHT_BYTES(crc, word) __crc32cd(crc, word)
#define ONE_BYTE(crc, byte) __crc32cb(crc, byte)
#endif

#ifdef HAS_INSTRUCTION
WITH_INSTRUCTION static uint32_t by_instruction(const uint8_t *bytes, size_t length) {
    uint32_t crc = ~0u;
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        crc = EIGHT_BYTES(crc, word);
    }
    for (; i < length; i++) crc = ONE_BYTE(crc, bytes[i]);
    return ~crc;
}

uint32_t terse_crc32c(const uint8_t *bytes, size_t length) {
    return HAS_INSTRUCTION ? by_instruction(bytes, length) : terse_crc32c_by_table(bytes, length);
}
#else
uint32_t terse_crc32c(const uint8_t *bytes, size_t length) { return terse_crc32c_by_table(bytes, length); }
#endif
