/**
 * Forwards the launcher's signals to its ranks, which save and end. A second signal, or too long a wait, kills them.
 */
import { onSignals, type Signal } from "../interruption.ts";
import type { RankProcess } from "./rank-process.ts";

export class ForwardedSignals implements Disposable {
  /** The ranks that run now. */
  ranks: readonly RankProcess[] = [];
  /** The signal that came, if one did. */
  first: Signal | undefined;
  readonly #hearing = onSignals((signal) => this.#forward(signal));
  readonly #shutdownSeconds: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(shutdownSeconds: number) {
    this.#shutdownSeconds = shutdownSeconds;
  }

  #forward(signal: Signal): void {
    if (this.first !== undefined) {
      this.#kill(`ended by a second ${signal}, before the run was saved`);
      return;
    }
    this.first = signal;
    for (const rank of this.ranks) rank.kill(signal);
    const seconds = this.#shutdownSeconds;
    this.#timer = setTimeout(() => {
      this.#kill(`the ranks did not end within ${seconds} s after ${signal} (--shutdown-timeout), and were killed`);
    }, 1000 * seconds);
  }

  #kill(why: string): void {
    for (const rank of this.ranks) rank.end(why);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#hearing[Symbol.dispose]();
  }
}
