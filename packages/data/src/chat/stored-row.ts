/** A row, or a piece of one: its tokens are in memory, or in a file that is read when a batch has the row. */
import type { RowTokens } from "./row-tokens.ts";

/** What rows are pieces of. Places are tokens. */
export interface RowSource {
  read(from: number, to: number): RowTokens;
  /** How many tokens from `from` on are learned. */
  learned(from: number, to: number): number;
}

export class StoredRow {
  readonly length: number;
  readonly #source: RowSource;
  readonly #from: number;

  constructor(source: RowSource, from: number, length: number) {
    this.#source = source;
    this.#from = from;
    this.length = length;
  }

  read(): RowTokens {
    return this.#source.read(this.#from, this.#from + this.length);
  }

  /** Tokens that are learned: the first one of a row has nothing before it. */
  get targets(): number {
    return this.#source.learned(this.#from + 1, this.#from + this.length);
  }

  part(from: number, to: number): StoredRow {
    return new StoredRow(this.#source, this.#from + from, Math.min(to, this.length) - from);
  }
}

export function rowInMemory({ ids, learned }: RowTokens): StoredRow {
  const source: RowSource = {
    read: (from, to) => ({ ids: ids.subarray(from, to), learned: learned.subarray(from, to) }),
    learned: (from, to) => learned.subarray(from, to).reduce((sum, each) => sum + each, 0),
  };
  return new StoredRow(source, 0, ids.length);
}
