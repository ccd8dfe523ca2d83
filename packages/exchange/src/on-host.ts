/**
 * Memory of a GPU as codecs and engines take it. Some codecs run where the memory is, and nccl sends it from there.
 * Other memory is copied to the host, and what has been written is copied back before anything else happens. So
 * optimizers see the same results, the same bits, wherever their tensors are. Memory on the CPU is used as it is.
 */
import type { Codec } from "@terse/codecs";
import { type BufferLike, copy } from "@terse/collectives";
import { type Loan, uncounted } from "./scratch.ts";

export const deviceOf = (x: BufferLike): string => (ArrayBuffer.isView(x) ? "cpu" : x.device);

/** Runs `use` with vectors that are on the host, or on `device`, or where the codec runs. It writes them. */
export async function onHost(
  vectors: readonly BufferLike[],
  use: (vectors: readonly BufferLike[]) => Promise<void>,
  except?: string | Codec,
): Promise<void> {
  if (vectors.length === 0) return use(vectors);
  using copies = typeof except === "object" ? HostCopies.except(vectors[0]!, except) : new HostCopies(except);
  await use(vectors.map((x) => copies.of(x)));
  copies.giveBack();
}

/** For code that works on the host at once. */
export class HostCopies implements Disposable {
  readonly #device: string | undefined;
  readonly #loans: Loan[] = [];
  readonly #written: { readonly on: BufferLike; readonly host: BufferLike }[] = [];

  /** `device`: memory on this device need not be copied. */
  constructor(device?: string) {
    this.#device = device;
  }

  /** Memory where x is need not be copied if the codec runs there. */
  static except(x: BufferLike, codec: Codec): HostCopies {
    return new HostCopies(codec.runsOn(deviceOf(x)) ? deviceOf(x) : undefined);
  }

  /** x on the host, for reading and writing: `giveBack` copies it back. */
  of<X extends BufferLike>(x: X): X {
    const host = this.read(x);
    if (host !== x) this.#written.push({ on: x, host });
    return host;
  }

  /** x on the host, for reading. */
  read<X extends BufferLike>(x: X): X {
    if (ArrayBuffer.isView(x) || x.device === "cpu" || x.device === this.#device) return x;
    if (x.dtype !== "f32") throw new TypeError(`exchange: a vector on ${x.device} is ${x.dtype}; give f32`);
    const loan = uncounted.loan(4 * x.length);
    this.#loans.push(loan);
    copy(loan.floats, x);
    return loan.floats as BufferLike as X;
  }

  giveBack(): void {
    for (const { on, host } of this.#written) copy(on, host);
  }

  [Symbol.dispose](): void {
    for (const loan of this.#loans) loan[Symbol.dispose]();
  }
}
