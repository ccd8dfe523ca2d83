/** Of a timer. Node takes one that is longer than 24.8 days for a millisecond. */
export const milliseconds = (seconds: number): number => Math.min(seconds * 1000, 2 ** 31 - 1);
