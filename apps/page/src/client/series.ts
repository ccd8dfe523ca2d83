/** Values of one run or of one part of a step, over the steps, the seconds or the bytes of a run. */
export interface Series {
  readonly label: string;
  readonly colour: number;
  readonly x: readonly number[]; // ascending
  readonly y: readonly number[];
  /** Points joined by a line, for what is measured rarely. */
  readonly points?: boolean;
  readonly faint?: boolean;
}
