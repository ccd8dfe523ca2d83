/** What happened when, on this rank: the parts of steps, in memory, until the ranks put them into one file. */
import type { StepPart } from "../measures/step-meter.ts";

export interface TracedPart {
  readonly part: StepPart | "step";
  readonly began: number; // milliseconds of this process's performance.now()
  readonly ended: number;
  readonly step: number;
  readonly bucket?: number;
}

export class Trace {
  readonly parts: TracedPart[] = [];
  readonly #from: number;
  readonly #to: number; // the first step that is not traced
  #step = -1;

  constructor({ from, steps }: { from: number; steps: number }) {
    this.#from = from;
    this.#to = from + steps;
  }

  /** Parts belong to this step from now on. */
  begin(step: number): void {
    this.#step = step;
  }

  saw(part: TracedPart["part"], began: number, ended: number, bucket?: number): void {
    const step = this.#step;
    if (step < this.#from || step >= this.#to) return;
    this.parts.push({ part, began, ended, step, ...(bucket !== undefined && { bucket }) });
  }
}
