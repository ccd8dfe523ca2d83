const mostThings = 1 << 16;
const mostBytes = 64 << 20; // of the lines that brought them

/**
 * What the rendezvous keeps for one rank: its keys for good, and its requests until they are answered. A rank of ours
 * has some dozens of both, of a few kilobytes; the limits are there for one that wants to fill the server's memory.
 */
export class Holdings {
  #things = 0;
  #bytes = 0;
  readonly #requests = new Map<number, number>(); // number of a request → bytes of its line

  /** Both methods return what is wrong with this line; undefined where nothing is. */
  keep(bytes: number): string | undefined {
    this.#things++;
    this.#bytes += bytes;
    return this.#things <= mostThings && this.#bytes <= mostBytes
      ? undefined
      : `its keys and its requests without an answer are more than ${mostThings}, or than ${mostBytes >> 20} MiB`;
  }

  request(id: number, bytes: number): string | undefined {
    if (this.#requests.has(id)) return `request ${id} has no answer yet, and another one has its number`;
    this.#requests.set(id, bytes);
    return this.keep(bytes);
  }

  answered(id: number): void {
    const bytes = this.#requests.get(id);
    if (bytes === undefined) return;
    this.#requests.delete(id);
    this.#things--;
    this.#bytes -= bytes;
  }
}
