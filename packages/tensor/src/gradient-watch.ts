import { native } from "@terse/native-tensor";
import { handleOf } from "./lifetime.ts";
import type { Parameter } from "./nn/parameter.ts";

// The native hook of a parameter speaks in tokens; each watched parameter of each arena has its own.
const listeners = new Map<number, () => void>();
let nextToken = 1;

/** Tells several callbacks when backward has completed the gradient of one of `leaves`. Without a callback, nothing is hooked. */
export class GradientWatch {
  readonly #leaves: readonly Parameter[];
  readonly #callbacks = new Set<(index: number) => void>();
  readonly #first: number;

  constructor(leaves: readonly Parameter[]) {
    this.#leaves = leaves;
    this.#first = nextToken;
    nextToken += leaves.length;
  }

  /** Returns the function that removes it. */
  add(callback: (index: number) => void): () => void {
    if (this.#callbacks.size === 0) this.#hook();
    const own = (index: number) => callback(index); // given twice, called twice
    this.#callbacks.add(own);
    return () => {
      if (this.#callbacks.delete(own) && this.#callbacks.size === 0) this.#unhook();
    };
  }

  #hook(): void {
    if (listeners.size === 0) native.onReady((token) => listeners.get(token)?.());
    this.#leaves.forEach((leaf, i) => {
      listeners.set(this.#first + i, () => {
        for (const callback of this.#callbacks) callback(i);
      });
      if (leaf.requiresGrad) native.watch(handleOf(leaf), this.#first + i); // one that is frozen by now never comes
    });
  }

  #unhook(): void {
    this.#leaves.forEach((leaf, i) => {
      listeners.delete(this.#first + i);
      native.unwatch(handleOf(leaf));
    });
  }
}
