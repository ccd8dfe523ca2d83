import { createHash, timingSafeEqual } from "node:crypto";
import { textOfPeer } from "../text-of-peer.ts";
import { type Hello, protocolVersion } from "./protocol.ts";

interface World {
  /** The ranks that have joined. */
  readonly peers: ReadonlyMap<number, { readonly hello: Hello }>;
  /** Why the world has failed, if it has. */
  failure(): string | undefined;
  /** The world cannot become complete: all ranks that wait for it are told. */
  refuseAll(message: string): void;
}

const digest = (text: string) => createHash("sha256").update(text).digest();

/** Decides by its hello whether a process may join the world. */
export class Admission {
  readonly #options: { readonly size: number; readonly token: string; readonly epoch: string };
  readonly #world: World;
  readonly #wrongTokens = new Map<number, string>(); // by rank, as the process called itself: its address

  constructor(options: { size: number; token: string; epoch: string }, world: World) {
    this.#options = options;
    this.#world = world;
  }

  /** Why this process, at the address `from`, may not join; undefined where it may. */
  objection(hello: Hello, from: string): string | undefined {
    const { token, size, epoch } = this.#options;
    const { rank, pid, host } = hello;
    if (hello.terse !== protocolVersion)
      return `this is a terse rendezvous of protocol ${protocolVersion}, and the first line was no hello of that version`;
    if (typeof hello.token !== "string" || !timingSafeEqual(digest(hello.token), digest(token))) {
      this.#noteWrongToken(rank, from);
      return "the token is wrong; TERSE_TOKEN must be the one that the rendezvous was started with";
    }
    const text = [hello.epoch, hello.config, host].every((x) => typeof x === "string");
    if (!text || !Number.isInteger(rank) || !Number.isInteger(hello.size) || !Number.isInteger(pid))
      return "the hello is not complete";
    if (hello.epoch !== epoch)
      return `this is attempt ${epoch} of the run, and rank ${rank} (pid ${pid}) is of attempt ${textOfPeer(hello.epoch, 100)}; end that process`;
    const who = `rank ${rank} (pid ${pid} on ${textOfPeer(host, 100)})`;
    if (rank < 0 || rank >= hello.size)
      return `there is no rank ${rank} in a world of ${hello.size}; RANK must be 0 to ${hello.size - 1}`;
    if (hello.size !== size)
      return this.#refuseAll(
        `${who} was started for a world of ${hello.size} ranks, and this world has ${size}; WORLD_SIZE must be the same for all`,
      );
    const failure = this.#world.failure();
    if (failure !== undefined) return failure;
    const present = this.#world.peers.get(rank)?.hello;
    if (hello.beat)
      return present?.pid === pid && present.host === host ? undefined : "this heartbeat belongs to no rank";
    if (present)
      return `rank ${rank} has already joined (pid ${present.pid} on ${textOfPeer(present.host, 100)}); every process needs a RANK of its own`;
    for (const other of this.#world.peers.values())
      if (other.hello.config !== hello.config)
        return this.#refuseAll(
          `${who} runs with another configuration or version than rank ${other.hello.rank}; start all ranks alike`,
        );
    return undefined;
  }

  /** What is wrong with a rank that has not joined, where a process with another token has called itself that rank. */
  wrongTokenOf(rank: number): string | undefined {
    const from = this.#wrongTokens.get(rank);
    return (
      from &&
      `a process at ${from} that calls itself rank ${rank} was refused, because its token is wrong; TERSE_TOKEN must be the same for all ranks`
    );
  }

  /**
   * Warns the user of this process at once, because the ranks that wait would hear of it only at the deadline. They go
   * on waiting: anyone can send a wrong token, and the rank itself may still come.
   */
  #noteWrongToken(rank: number, from: string): void {
    const isAwaited = Number.isInteger(rank) && rank >= 0 && rank < this.#options.size;
    if (!isAwaited || this.#world.peers.has(rank) || this.#wrongTokens.has(rank)) return;
    this.#wrongTokens.set(rank, from);
    process.emitWarning(this.wrongTokenOf(rank)!, "TerseWarning");
  }

  #refuseAll(message: string): string {
    this.#world.refuseAll(message);
    return message;
  }
}
