/** What happened when, in some steps of a run: every rank keeps the parts of its steps in memory. */
import type { StepPart } from "../measures/step-parts.ts";
import type { Recipe } from "../recipe.ts";

export interface TracedPart {
  readonly part: StepPart | "step";
  readonly began: number; // milliseconds of this process's performance.now()
  readonly ended: number;
  readonly step: number;
  readonly bucket?: number;
}

export class Trace {
  readonly #from: number;
  readonly #to: number; // the first step that is not traced
  #parts: TracedPart[] = [];
  #step = -1;

  /** The steps [from, from + steps). */
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
    this.#parts.push({ part, began, ended, step, ...(bucket !== undefined && { bucket }) });
  }

  /** Whether `step` was the last one of the trace, or the run ends after it. */
  isComplete(step: number, isLast: boolean): boolean {
    return this.#parts.length > 0 && (step + 1 >= this.#to || isLast);
  }

  /** The parts so far, which it forgets. */
  take(): readonly TracedPart[] {
    const parts = this.#parts;
    this.#parts = [];
    return parts;
  }
}

/**
 * The trace that a recipe asks for, in a process that begins at step `begin`; undefined for none. It ends with the run
 * at the latest.
 */
export function traceOf({ trace: { from, steps }, steps: end }: Recipe, begin: number): Trace | undefined {
  return steps === 0 ? undefined : new Trace({ from: Math.max(begin, Math.min(begin + from, end - steps)), steps });
}
