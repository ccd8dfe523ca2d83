/** An element is NaN or infinite. Thrown before anything is sent. */
export class NotFiniteError extends Error {
  override name = "NotFiniteError";
  /** Index of the first such element. */
  readonly index: number;

  constructor(where: string, index: number, value?: number) {
    super(
      `${where}[${index}] is ${value === undefined ? "NaN or infinite" : value}: find the first step whose loss or gradient is not finite, and lower the learning rate or clip the gradients.`,
    );
    this.index = index;
  }
}
