/** One number for height and width, or one for each. */
export type Pair = number | readonly [height: number, width: number];

export const pair = (size: Pair): readonly [height: number, width: number] =>
  typeof size === "number" ? [size, size] : size;
