/**
 * Forwards the launcher's signals to its ranks, which save and end. A second signal, or too long a wait, kills them.
 */
import { signals } from "../interruption.ts";
import type { RankProcess } from "./rank-process.ts";

type Signal = (typeof signals)[number];

export class ForwardedSignals implements Disposable {
  /** The ranks that run now. */
  ranks: readonly RankProcess[] = [];
  /** The signal that came, if one did. */
  first: Signal | undefined;
  readonly #shutdownSeconds: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(shutdownSeconds: number) {
    this.#shutdownSeconds = shutdownSeconds;
    for (const name of signals) process.on(name, this.#forward);
  }

  readonly #forward = (signal: Signal) => {
    if (this.first !== undefined) return this.#kill(`ended by a second ${signal}, before the run was saved`);
    this.first = signal;
    for (const rank of this.ranks) rank.kill(signal);
    const seconds = this.#shutdownSeconds;
    this.#timer = setTimeout(() => {
      this.#kill(`the ranks did not end within ${seconds} s after ${signal} (--shutdown-timeout), and were killed`);
    }, 1000 * seconds);
  };

  #kill(why: string): void {
    for (const rank of this.ranks) rank.end(why);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    for (const name of signals) process.off(name, this.#forward);
  }
}
