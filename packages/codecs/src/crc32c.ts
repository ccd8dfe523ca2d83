/**
 * CRC-32C, as in iSCSI (RFC 3720): Castagnoli's polynomial 0x1EDC6F41, least significant bit first. G. Castagnoli, S.
 * Bräuer, M. Herrmann 1993, "Optimization of Cyclic Redundancy-Check Codes with 24 and 32 Parity Bits".
 */
const reversed = 0x82f6_3b78;

type Tables = [none: Uint32Array, one: Uint32Array, two: Uint32Array, three: Uint32Array];

/** table[z][b]: the remainder of byte b with z zero bytes behind it. */
function remainders(): Tables {
  const tables = Array.from({ length: 4 }, () => new Uint32Array(256)) as Tables;
  for (let byte = 0; byte < 256; byte++) {
    let remainder = byte;
    for (let bit = 0; bit < 8; bit++) remainder = (remainder >>> 1) ^ (remainder & 1 ? reversed : 0);
    tables[0][byte] = remainder;
  }
  for (let zeros = 1; zeros < tables.length; zeros++) {
    const before = tables[zeros - 1]!;
    for (let byte = 0; byte < 256; byte++)
      tables[zeros]![byte] = (before[byte]! >>> 8) ^ tables[0][before[byte]! & 255]!;
  }
  return tables;
}

const tables = /* @__PURE__ */ remainders();

/** The CRC-32C of the bytes, as an unsigned 32-bit number. */
export function crc32c(bytes: Uint8Array): number {
  const [none, one, two, three] = tables;
  let crc = -1;
  let i = 0;
  // Four bytes at a time: their remainders do not depend on each other.
  for (; i + 4 <= bytes.length; i += 4) {
    crc ^= bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
    crc = three[crc & 255]! ^ two[(crc >>> 8) & 255]! ^ one[(crc >>> 16) & 255]! ^ none[crc >>> 24]!;
  }
  for (; i < bytes.length; i++) crc = none[(crc ^ bytes[i]!) & 255]! ^ (crc >>> 8);
  return ~crc >>> 0;
}
