/**
 * The key-value store that torchrun's agent keeps at MASTER_ADDR:MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE), where rank
 * 0 therefore cannot listen itself. Rank 0 writes the address of its rendezvous server into the store, and the other
 * ranks read it.
 *
 * Its requests, little-endian (TCPStoreBackend.hpp of torch/csrc/distributed/c10d; the same since PyTorch 2.1):
 *
 *   validate  0 | u32 0x3C85F7CE                           no answer; the first request
 *   set       1 | key | value                              no answer
 *   get       3 | key                                      value
 *   wait      6 | u64 how many | key …                     u8 0, once all are there
 *   delete    8 | key                                      i64 how many there were
 *
 * where a key and a value are | u64 length | bytes |.
 */
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { plainAddress } from "../address.ts";
import { RendezvousError } from "../errors.ts";
import { milliseconds } from "../milliseconds.ts";
import { reach } from "./reach.ts";

const requests = { validate: 0, set: 1, get: 3, wait: 6, delete: 8 } as const;
const magic = 0x3c85f7ce;
const valueLimit = 4096; // the values are addresses; an answer of another program could announce any length

export class TorchStore implements AsyncDisposable {
  readonly #socket: Socket;
  readonly #where: string;
  readonly #deadline: number; // of performance.now()
  #arrived = Buffer.alloc(0);
  #ended: Error | undefined;
  #wake = () => {};

  private constructor(socket: Socket, where: string, deadline: number) {
    this.#socket = socket;
    this.#where = where;
    this.#deadline = deadline;
    socket.on("data", (bytes: Buffer) => {
      this.#arrived = Buffer.concat([this.#arrived, bytes]);
      if (this.#arrived.length > 2 * valueLimit) {
        this.#arrived = Buffer.alloc(0);
        socket.destroy(this.#strange("sends more than it was asked for"));
      }
      this.#wake();
    });
    const end = (error?: Error) => {
      this.#ended ??= error ?? new Error("the connection was closed");
      this.#wake();
    };
    socket.on("error", end).on("close", () => end());
  }

  /** Connects to the store. Throws RendezvousError when nothing listens there before the deadline. */
  static async connect(host: string, port: number, deadlineSeconds: number): Promise<TorchStore> {
    const deadline = performance.now() + deadlineSeconds * 1000;
    const where = `${host}:${port}`;
    for (;;) {
      try {
        const store = new TorchStore(await reach(host, port, deadline), where, deadline);
        const hello = Buffer.alloc(5);
        hello.writeUInt8(requests.validate);
        hello.writeUInt32LE(magic, 1);
        store.#socket.write(hello);
        return store;
      } catch (cause) {
        if (performance.now() + 200 > deadline)
          throw new RendezvousError(
            `torchrun's store at ${where} (MASTER_ADDR and MASTER_PORT) does not answer within ${deadlineSeconds} s: ${(cause as Error).message}`,
            [],
            { cause },
          );
        await sleep(200);
      }
    }
  }

  /** This machine's address on the way to the store, which the other ranks can be expected to reach too. */
  get localAddress(): string {
    return plainAddress(this.#socket.localAddress ?? "127.0.0.1");
  }

  set(key: string, value: string): void {
    this.#socket.write(Buffer.concat([Buffer.of(requests.set), counted(key), counted(value)]));
  }

  /** Waits until a rank has set it. Throws RendezvousError at the deadline of `connect`. */
  async get(key: string): Promise<string> {
    this.#socket.write(Buffer.concat([Buffer.of(requests.wait), length(1), counted(key)]));
    const answer = (await this.#take(1, key))[0];
    if (answer !== 0) throw this.#strange(`answers ${answer} to a wait`);
    this.#socket.write(Buffer.concat([Buffer.of(requests.get), counted(key)]));
    const bytes = (await this.#take(8, key)).readBigUInt64LE();
    if (bytes > valueLimit) throw this.#strange(`announces ${bytes} bytes for ${key}`);
    return (await this.#take(Number(bytes), key)).toString("utf8");
  }

  async delete(key: string): Promise<void> {
    this.#socket.write(Buffer.concat([Buffer.of(requests.delete), counted(key)]));
    await this.#take(8, key);
  }

  /** Resolves when every `set` has been sent. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#ended) await new Promise<void>((resolve) => this.#socket.once("close", resolve).end(resolve));
    this.#socket.destroy();
  }

  async #take(bytes: number, key: string): Promise<Buffer> {
    while (this.#arrived.length < bytes) {
      if (this.#ended)
        throw new RendezvousError(`torchrun's store at ${this.#where} ended: ${this.#ended.message}`, [], {
          cause: this.#ended,
        });
      const left = this.#deadline - performance.now();
      if (left <= 0)
        throw new RendezvousError(
          `rank 0 has not written its address into torchrun's store at ${this.#where} (${key}); check that it started`,
          [0],
        );
      const timer = setTimeout(() => this.#wake(), milliseconds(left / 1000));
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      clearTimeout(timer);
    }
    const taken = this.#arrived.subarray(0, bytes);
    this.#arrived = this.#arrived.subarray(bytes);
    return taken;
  }

  #strange(what: string): RendezvousError {
    return new RendezvousError(
      `what listens at ${this.#where} ${what}: it is not torchrun's store; set MASTER_ADDR and MASTER_PORT to those that torchrun gives`,
    );
  }
}

function length(bytes: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64LE(BigInt(bytes));
  return buffer;
}

function counted(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([length(bytes.length), bytes]);
}
