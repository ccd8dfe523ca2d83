export interface RoundTimes {
  readonly syncEvery: number; // H
  readonly fragments: number; // F
  readonly delay: number; // τ
  /** Of the run: without fragments and delay the last one ends with a round, wherever it is between two others. */
  readonly steps?: number | undefined;
}

/** When rounds leave and are used: a function of the step alone, counted from the beginning of the run. */
export class RoundSchedule {
  readonly every: number; // E, steps between two rounds
  readonly delay: number; // τ
  readonly #fragments: number;
  readonly #last: number | undefined;
  /** How many more rounds a fragment has had than the schedule says: fewer where a run began without local steps. */
  #ahead: readonly number[];

  /** Throws RangeError where H is no multiple of F, or a round would not arrive before the next one leaves. */
  constructor({ syncEvery, fragments, delay, steps }: RoundTimes) {
    if (!Number.isInteger(syncEvery) || syncEvery < 1)
      throw new RangeError(`local.syncEvery: expected a whole number from 1 on, got ${syncEvery}`);
    if (!Number.isInteger(fragments) || fragments < 1)
      throw new RangeError(`local.fragments: expected a whole number from 1 on, got ${fragments}`);
    if (syncEvery % fragments !== 0)
      throw new RangeError(
        `local.syncEvery: ${syncEvery} is no multiple of local.fragments, ${fragments}; take ${multiplesNear(syncEvery, fragments)}`,
      );
    this.every = syncEvery / fragments;
    if (!Number.isInteger(delay) || delay < 0 || delay >= this.every)
      throw new RangeError(
        `local.delay: a round leaves every ${this.every} steps${fragments > 1 ? " (syncEvery / fragments)" : ""}, and must arrive before the next one leaves: expected a whole number from 0 to ${this.every - 1}, got ${delay}`,
      );
    this.delay = delay;
    this.#fragments = fragments;
    this.#last = fragments === 1 && delay === 0 ? steps : undefined;
    this.#ahead = new Array<number>(fragments).fill(0);
  }

  /** Whether a round leaves when so many steps have been taken. */
  leaves(steps: number): boolean {
    return (steps + this.delay) % this.every === 0 || steps === this.#last;
  }

  /** Whether a round is used then. */
  isUsed(steps: number): boolean {
    return steps % this.every === 0 || steps === this.#last;
  }

  /** The fragment of the round that is used next, or just now. */
  fragmentAt(steps: number): number {
    return (Math.ceil(steps / this.every) - 1) % this.#fragments;
  }

  /** The round that is used in step t, counted from 0, and how many of its fragment come before it. */
  roundOf(step: number): { readonly fragment: number; readonly number: number } | undefined {
    if (!this.isUsed(step + 1)) return undefined;
    const round = Math.ceil((step + 1) / this.every) - 1;
    const fragment = round % this.#fragments;
    return { fragment, number: Math.floor(round / this.#fragments) + this.#ahead[fragment]! };
  }

  /** A run goes on after so many steps, in which each fragment has left so often: never in a run without rounds. */
  goesOn(steps: number, rounds: readonly number[] | undefined, isUnderWay: boolean): void {
    const left = Math.floor(steps / this.every) + Number(isUnderWay);
    this.#ahead = this.#ahead.map((_, f) => (rounds?.[f] ?? 0) - Math.ceil(Math.max(0, left - f) / this.#fragments));
  }
}

function multiplesNear(value: number, of: number): string {
  const below = of * Math.floor(value / of);
  return below > 0 ? `${below} or ${below + of}` : `${of}`;
}
