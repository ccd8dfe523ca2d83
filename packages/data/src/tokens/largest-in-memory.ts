/**
 * Bytes of data that may be in memory at once: less than half of what is free. The data is copied once, and other ranks
 * have theirs.
 */
export const largestInMemory = (): number => process.availableMemory() * 0.4;
