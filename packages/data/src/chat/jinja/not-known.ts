/** Something of Jinja or Python that is not known here: the template names it, whatever the row. */
export class NotKnown extends Error {
  readonly word: string;

  constructor(what: string, word: string) {
    super(`${what} is not known here`);
    this.word = word;
  }

  /** The same with the lines of the template that have the word. */
  in(template: string): NotKnown {
    const isWord = new RegExp(`(?<!\\w)${this.word}(?!\\w)`);
    const lines = template.split("\n").flatMap((line, i) => (isWord.test(line) ? [i + 1] : []));
    const some = lines.length > 3 ? `${lines.slice(0, 3).join(", ")}, …` : lines.join(", ");
    if (/^\w+$/.test(this.word) && lines.length > 0)
      this.message += ` (${lines.length === 1 ? "line" : "lines"} ${some} of the template)`;
    return this;
  }
}
