/** A NaN or an infinity where only finite numbers make sense. Thrown before anything is sent. */
export class NotFiniteError extends Error {
  override name = "NotFiniteError";
  /** Index of the first such element. */
  readonly index: number;

  constructor(where: string, index: number, value?: number) {
    super(
      `${where}[${index}] is ${value === undefined ? "NaN or infinite" : value}: look for the step at which the loss or a gradient stopped being finite, and lower the learning rate or clip there.`,
    );
    this.index = index;
  }
}
