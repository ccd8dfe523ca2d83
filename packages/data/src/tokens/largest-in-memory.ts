/** How many bytes of data may be kept in memory at once: less than half of what is free, because they are copied once, and other ranks have theirs. */
export const largestInMemory = (): number => process.availableMemory() * 0.4;
