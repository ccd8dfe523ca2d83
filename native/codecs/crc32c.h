// CRC-32C (Castagnoli 1993, iSCSI in RFC 3720): x^32 + x^28 + x^27 + ... + 1, 0x1EDC6F41, least significant bit first.
#ifndef TERSE_CRC32C_H
#define TERSE_CRC32C_H
#include <stddef.h>
#include <stdint.h>

// Uses the processor's own instruction where it has one.
uint32_t terse_crc32c(const uint8_t *bytes, size_t length);

// The same by a table, as on a processor without.
uint32_t terse_crc32c_by_table(const uint8_t *bytes, size_t length);

#endif
