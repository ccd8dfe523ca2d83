/** How much of some work is done: a bar that moves on a terminal, else a line for each tenth. */
import type { Writable } from "node:stream";
import { columnsOf, fitted, isTerminal, printableLine } from "@terse/options";

interface Output extends Writable {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

const widest = 30; // the bar

export class ProgressBar implements Disposable {
  readonly #what: string;
  readonly #amount: (n: number) => string;
  readonly #output: Output;
  #shown = "";

  constructor(what: string, amount: (n: number) => string, output: Output = process.stderr) {
    this.#what = what;
    this.#amount = amount;
    this.#output = output;
  }

  at(done: number, total: number | undefined): void {
    const share = total === undefined || total === 0 ? undefined : Math.min(1, done / total);
    if (isTerminal(this.#output)) {
      const room = columnsOf(this.#output) - 1; // a line that fills the last column may wrap
      const numbers = share === undefined ? "" : ` ${Math.floor(100 * share)}%`;
      const after = `${numbers} ${this.#amount(done)}`;
      const what = fitted(this.#what, room - after.length);
      const width = Math.min(widest, room - what.length - after.length - 3);
      const filled = Math.round((share ?? 0) * width);
      const bar = share === undefined || width < 4 ? "" : ` [${"█".repeat(filled)}${" ".repeat(width - filled)}]`;
      this.#show(fitted(`${what}${bar}${after}`, room), (text) => `\r${text}\u001b[K`);
    } else if (share !== undefined)
      this.#show(`${this.#what}: ${10 * Math.floor(10 * share)} %`, (text) => `${text}\n`);
  }

  #show(given: string, written: (text: string) => string): void {
    const text = printableLine(given);
    if (text === this.#shown) return;
    this.#shown = text;
    this.#output.write(written(text));
  }

  [Symbol.dispose](): void {
    if (isTerminal(this.#output) && this.#shown !== "") this.#output.write("\r\u001b[K");
  }
}
