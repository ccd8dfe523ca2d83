import { isTerminal } from "@terse/options";

/** Lines, and on a terminal one below them that changes. Takes texts as they are: the caller makes them printable. */
export class MovingLine {
  readonly #out: NodeJS.WriteStream;
  #shown = "";

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  say(text: string): void {
    const below = this.#shown;
    this.show("");
    this.#out.write(`${text}\n`);
    this.show(below);
  }

  /** Replaces the line below; "" removes it. It must fit in one line of the terminal. */
  show(text: string): void {
    if (!isTerminal(this.#out) || text === this.#shown) return;
    this.#out.write(`${this.#shown === "" ? "" : "\r\x1b[2K"}${text}`);
    this.#shown = text;
  }
}
