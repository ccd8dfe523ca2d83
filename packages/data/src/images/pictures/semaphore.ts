/**
 * Limits concurrent work to `total` units, of which each piece of work takes some. Work begins in the order of the
 * requests.
 */
export class Semaphore {
  readonly total: number;
  #free: number;
  readonly #waiting: { readonly units: number; readonly begin: () => void }[] = [];

  constructor(total: number) {
    this.total = total;
    this.#free = total;
  }

  /** Runs `work` when `units` are free. Work that takes more than there are runs alone. */
  async use<T>(units: number, work: () => Promise<T>): Promise<T> {
    const taken = Math.min(units, this.total);
    await new Promise<void>((begin) => {
      this.#waiting.push({ units: taken, begin });
      this.#beginNext();
    });
    try {
      return await work();
    } finally {
      this.#free += taken;
      this.#beginNext();
    }
  }

  #beginNext(): void {
    while (this.#waiting.length > 0 && this.#waiting[0]!.units <= this.#free) {
      const { units, begin } = this.#waiting.shift()!;
      this.#free -= units;
      begin();
    }
  }
}
