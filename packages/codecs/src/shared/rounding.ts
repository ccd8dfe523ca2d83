export const largestFloat = 3.4028234663852886e38;

/** The nearest whole number; of two equally near ones the even one, as IEEE 754 rounds. */
export function roundHalfEven(value: number): number {
  const below = Math.floor(value);
  const above = value - below;
  return above > 0.5 || (above === 0.5 && below % 2 !== 0) ? below + 1 : below;
}
