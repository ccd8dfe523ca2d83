import type { By, RunData } from "../run-data.ts";

export interface View {
  readonly runs: readonly RunData[];
  /** The run whose details are shown; its number is that of its colour. */
  readonly chosen: number;
  readonly by: By;
}

/** A part of the page. It hides itself where a run has not measured what it shows. */
export interface Panel {
  readonly card: HTMLElement;
  show(view: View): void;
  /** Draws all of it at the next `show`: the page has changed its colours. */
  forget?(): void;
}
