import { native } from "@terse/native-tensor";
import { handleOf } from "./lifetime.ts";
import type { Parameter } from "./nn/parameter.ts";

// The native hook of a parameter reports a token. Each parameter of each arena has its own.
const listeners = new Map<number, () => void>();
let nextToken = 1;

/**
 * Calls callbacks when backward has completed the gradient of one of `leaves`. Without callbacks it has no native
 * hooks.
 */
export class GradientHooks {
  readonly #leaves: readonly Parameter[];
  readonly #callbacks = new Set<(index: number) => void>();
  readonly #first: number;

  constructor(leaves: readonly Parameter[]) {
    this.#leaves = leaves;
    this.#first = nextToken;
    nextToken += leaves.length;
  }

  /** Returns a function that removes the callback. */
  add(callback: (index: number) => void): () => void {
    if (this.#callbacks.size === 0) this.#addNative();
    const own = (index: number) => callback(index); // a callback that is added twice is called twice
    this.#callbacks.add(own);
    return () => {
      if (this.#callbacks.delete(own) && this.#callbacks.size === 0) this.#removeNative();
    };
  }

  #addNative(): void {
    if (listeners.size === 0) native.onGradientReady((token) => listeners.get(token)?.());
    this.#leaves.forEach((leaf, i) => {
      listeners.set(this.#first + i, () => {
        for (const callback of this.#callbacks) callback(i);
      });
      if (leaf.requiresGrad) native.addGradientHook(handleOf(leaf), this.#first + i); // not if it was frozen meanwhile
    });
  }

  #removeNative(): void {
    this.#leaves.forEach((leaf, i) => {
      listeners.delete(this.#first + i);
      native.removeGradientHook(handleOf(leaf));
    });
  }
}
