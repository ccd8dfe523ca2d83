/**
 * Memory of a GPU as codecs and engines take it. Codecs work on the CPU, and only nccl sends a GPU's memory. Other
 * memory is copied to the host, and what has been written is copied back before anything else happens. So optimizers
 * see the same results, the same bits, wherever their tensors are. Memory on the CPU is used as it is.
 */
import { type BufferLike, copy } from "@terse/collectives";
import { isNativeBuffer, retaining } from "./retaining.ts";
import { type Loan, uncounted } from "./scratch.ts";

/**
 * As `retaining`, with the vector and the buffers among the options on the host. The options are written, the vector
 * only where `replaces` says so.
 */
export function retainingOnHost<X extends BufferLike, O extends object, R>(
  vector: X,
  given: O,
  use: (x: X, options: O) => Promise<R>,
  replaces = false,
): Promise<R> {
  return retaining(vector, given, async (x, options) => {
    using copies = new HostCopies();
    const entries = Object.entries(options).filter(([, value]) => isNativeBuffer(value)) as [string, BufferLike][];
    const here = Object.fromEntries(entries.map(([name, buffer]) => [name, copies.of(buffer)]));
    const result = await use(replaces ? copies.of(x) : copies.read(x), { ...options, ...here });
    copies.giveBack();
    return result;
  });
}

/** Runs `use` with vectors that are on the host or on `device`. It writes them. */
export async function onHost(
  vectors: readonly BufferLike[],
  use: (vectors: readonly BufferLike[]) => Promise<void>,
  device?: string,
): Promise<void> {
  using copies = new HostCopies(device);
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
