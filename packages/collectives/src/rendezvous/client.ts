import type { Socket } from "node:net";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { plainAddress } from "../address.ts";
import { RendezvousError } from "../errors.ts";
import { milliseconds } from "../milliseconds.ts";
import { textOfPeer } from "../text-of-peer.ts";
import { problemOfAnswer, problemOfWelcome } from "./check-lines.ts";
import { readLines, sendLine } from "./lines.ts";
import { defaultOutageSeconds, silenceAfter } from "./outage.ts";
import {
  type AbortReason,
  type FromServer,
  type GroupFailure,
  type Hello,
  heartbeatOf,
  innerGroupOf,
  lineLimit,
  protocolVersion,
} from "./protocol.ts";
import { reach } from "./reach.ts";
import type { WorldRendezvous } from "./rendezvous.ts";

/** How a rank reaches the rendezvous server, and who it is. */
export interface ClientOptions {
  host: string;
  port: number;
  token: string;
  rank: number;
  size: number;
  config?: string;
  epoch?: string;
  /** The server must answer within so long. Default 60. */
  deadlineSeconds?: number;
}

const keepOpenMilliseconds = 30_000;

// An Omit that keeps the alternatives of a union apart.
type Without<T, K extends string> = T extends unknown ? Omit<T, K> : never;

const hasLeft = () => new RendezvousError("this rank has left the rendezvous");

/** One rank's connection to the rendezvous server. It keeps Node alive only while a request is pending. */
export class RendezvousClient implements WorldRendezvous {
  readonly #socket: Socket;
  readonly #hello: Hello;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void; group: string }>();
  readonly #listeners = new Map<string, (rank: number, value: unknown) => void>();
  readonly #onFailure: (failure: GroupFailure) => void;
  #failure: GroupFailure | undefined; // of the world
  #holder: number | null = null;
  #outageSeconds = defaultOutageSeconds;
  #deadlineSeconds = Number.POSITIVE_INFINITY; // the server's
  #requests = 0;
  #gone = false;

  private constructor(socket: Socket, hello: Hello, onFailure: (failure: GroupFailure) => void) {
    this.#socket = socket;
    this.#hello = hello;
    this.#onFailure = onFailure;
  }

  /**
   * Connects and says hello. `onFailure` is called when the world, or a group in it, has failed. Throws
   * RendezvousError.
   */
  static async connect(options: ClientOptions, onFailure: (failure: GroupFailure) => void): Promise<RendezvousClient> {
    const { host, port, token, rank, size, config = "", epoch = "0", deadlineSeconds = 60 } = options;
    const deadline = performance.now() + deadlineSeconds * 1000;
    const hello: Hello = {
      terse: protocolVersion,
      token,
      epoch,
      rank,
      size,
      config,
      pid: process.pid,
      host: hostname(),
    };
    // The server may not listen yet: retry with growing, random pauses.
    for (let pause = 20; ; pause = Math.min(pause * 2, 1000)) {
      try {
        const socket = await reach(host, port, deadline);
        const client = new RendezvousClient(socket, hello, onFailure);
        await client.#introduce(deadline, `${host}:${port}`);
        return client;
      } catch (error) {
        if (error instanceof RendezvousError) throw error;
        const left = deadline - performance.now();
        if (left <= 0)
          throw new RendezvousError(
            `rank ${rank} found no rendezvous at ${host}:${port} within ${deadlineSeconds} s (${(error as Error).message}); check that it runs, and that MASTER_ADDR and MASTER_PORT, or TERSE_RENDEZVOUS, are its address`,
            [],
            { cause: error },
          );
        await sleep(Math.min(left, pause * (0.5 + Math.random())));
      }
    }
  }

  get rank(): number {
    return this.#hello.rank;
  }

  get outageSeconds(): number {
    return this.#outageSeconds;
  }

  /** This machine's address on the way to the server, which the other ranks can be expected to reach too. */
  get localAddress(): string {
    return plainAddress(this.#socket.localAddress ?? "127.0.0.1");
  }

  /**
   * Where the heartbeat connects, its first line, its interval, and the silence after which the server counts as
   * stopped.
   */
  get heartbeat(): { host: string; port: number; hello: string; intervalMs: number; silenceMs: number } {
    const { seconds, heartbeatMs } = silenceAfter(this.#outageSeconds);
    return {
      intervalMs: heartbeatMs,
      silenceMs: 1000 * seconds,
      host: plainAddress(this.#socket.remoteAddress ?? ""),
      port: this.#socket.remotePort ?? 0,
      hello: JSON.stringify({ ...this.#hello, beat: true }),
    };
  }

  async set(key: string, value: unknown): Promise<void> {
    await this.#ask({ do: "set", key, value }, "");
  }

  /** Waits until a rank has set it. */
  get(key: string): Promise<unknown> {
    return this.#ask({ do: "get", key }, "");
  }

  /** Resolves when the server hears this rank's heartbeat. From then on each side notices when the other one stops. */
  async heartbeatHeard(): Promise<void> {
    await this.get(heartbeatOf(this.rank));
  }

  allGather(key: string, members: readonly number[], value: unknown): Promise<unknown[]> {
    return this.#ask({ do: "allGather", key, members: [...members], value }, key) as Promise<unknown[]>;
  }

  allToAll(key: string, members: readonly number[], values: readonly unknown[]): Promise<unknown[]> {
    return this.#ask({ do: "allToAll", key, members: [...members], values: [...values] }, key) as Promise<unknown[]>;
  }

  async leave(group: string, members: readonly number[], value: unknown): Promise<void> {
    await this.#ask({ do: "leave", group, members: [...members], value }, `${group}/leave`).catch(() => {});
    this.#listeners.delete(group);
  }

  onLeave(group: string, listener: (rank: number, value: unknown) => void): void {
    this.#listeners.set(group, listener);
  }

  /** Asks the server to end this group; it reports the failure to all ranks. */
  abort(group: string, reason: AbortReason, message: string): void {
    sendLine(this.#socket, { do: "abort", group, reason, message });
  }

  /** The server is silent: it no longer answers heartbeats, or (`seconds`) it has not answered a request. */
  serverIsSilent(seconds = silenceAfter(this.#outageSeconds).seconds): void {
    const rank = this.#holder;
    if (this.#gone || this.#failure || rank === this.rank) return;
    const why = `is lost: no heartbeat for ${seconds} s; its process is stopped, or its machine is not reachable`;
    this.#fail(
      rank === null
        ? { kind: "refused", message: `the rendezvous ${why}` }
        : { kind: "lost", rank, message: `rank ${rank}, which runs the rendezvous, ${why}` },
    );
  }

  async close(): Promise<void> {
    if (this.#gone) return;
    this.#gone = true;
    this.#socket.ref();
    const ended = new Promise<void>((resolve) =>
      this.#socket.destroyed ? resolve() : this.#socket.once("close", () => resolve()),
    );
    sendLine(this.#socket, { do: "bye" });
    this.#socket.end();
    // A server that does not answer must not keep the process alive.
    const timer = setTimeout(() => this.#socket.destroy(), 2000);
    await ended;
    clearTimeout(timer);
  }

  /** Says hello. Resolves when the server has welcomed this rank. */
  #introduce(deadline: number, where: string): Promise<void> {
    const socket = this.#socket;
    return new Promise((resolve, reject) => {
      let welcome = false;
      const refuse = (why: string) => {
        reject(new RendezvousError(why));
        socket.destroy();
      };
      const unanswered = () =>
        refuse(
          `what listens at ${where} does not answer like a rendezvous; check that its process is not stopped, and that MASTER_PORT is not another program's`,
        );
      const timer = setTimeout(unanswered, milliseconds(Math.max(deadline - performance.now(), 1) / 1000));
      const first = (line: object) => {
        clearTimeout(timer);
        const problem = problemOfWelcome(line);
        if (problem !== undefined)
          return refuse(
            `what listens at ${where} is no rendezvous of this version (${problem}); check that MASTER_PORT is not another program's, and start all ranks alike`,
          );
        const { refused } = line as { refused?: unknown };
        if (typeof refused === "string")
          return refuse(`the rendezvous at ${where} refused rank ${this.#hello.rank}: ${textOfPeer(refused)}`);
        const answer = line as Extract<FromServer, { welcome: true }>;
        welcome = true;
        this.#holder = answer.holder;
        this.#outageSeconds = answer.outageSeconds;
        this.#deadlineSeconds = answer.deadlineSeconds ?? this.#deadlineSeconds;
        this.#keepOpen();
        socket.unref();
        resolve();
      };
      readLines(
        socket,
        () => lineLimit,
        (line) => {
          if (!welcome) return first(line);
          const problem = problemOfAnswer(line);
          return problem === undefined ? this.#receive(line as FromServer) : this.#invalid(where, problem);
        },
        (why) =>
          welcome
            ? this.#invalid(where, why)
            : refuse(
                `what listens at ${where} is not a terse rendezvous; check that MASTER_PORT is not another program's`,
              ),
      );
      socket.on("error", () => {}); // the close event follows
      socket.on("close", () => {
        clearTimeout(timer);
        if (welcome) return this.#ended(where);
        reject(new Error("the connection was closed"));
      });
      sendLine(socket, this.#hello);
    });
  }

  /**
   * A device on the path forgets a connection over which nothing goes for some minutes. The kernel's own keepalive
   * would do the same, and end the connection in an outage; whether the other side still lives is the matter of
   * heartbeats.
   */
  #keepOpen(): void {
    const timer = setInterval(() => this.#socket.write("\n"), keepOpenMilliseconds);
    timer.unref();
    this.#socket.once("close", () => clearInterval(timer));
  }

  #receive(line: FromServer): void {
    if ("id" in line) {
      const waiting = this.#waiting.get(line.id);
      this.#waiting.delete(line.id);
      if (this.#waiting.size === 0) this.#socket.unref();
      if ("error" in line) waiting?.reject(new RendezvousError(textOfPeer(line.error), line.missing));
      else waiting?.resolve(line.value);
    } else if ("left" in line) {
      this.#listeners.get(line.left)?.(line.rank, line.value);
    } else if ("failure" in line) {
      this.#fail({ ...line.failure, message: textOfPeer(line.failure.message) });
    }
  }

  /** The server, or somebody on the path, has sent what no server sends. */
  #invalid(where: string, why: string): void {
    if (this.#gone || this.#failure) return;
    this.#fail({ kind: "refused", message: `the rendezvous at ${where} sent invalid data: ${why}` });
    this.#socket.destroy();
  }

  #fail(failure: GroupFailure): void {
    const inner = innerGroupOf(failure);
    if (inner === undefined) this.#failure ??= failure;
    this.#onFailure(failure);
    for (const [id, { reject, group }] of this.#waiting) {
      if (inner !== undefined && !group.startsWith(`${inner}/`)) continue;
      this.#waiting.delete(id);
      reject(new RendezvousError(failure.message, failure.kind === "missing" ? failure.ranks : []));
    }
    if (this.#waiting.size === 0 && !this.#gone) this.#socket.unref();
  }

  #ended(where: string): void {
    if (this.#gone) for (const { reject } of this.#waiting.values()) reject(hasLeft());
    if (this.#gone || this.#failure) return;
    const rank = this.#holder;
    this.#fail(
      rank === null
        ? {
            kind: "refused",
            message: `the rendezvous at ${where} is gone: its process ended, or its machine is not reachable`,
          }
        : {
            kind: "lost",
            rank,
            message: `rank ${rank} is lost: the rendezvous that it ran at ${where} is gone; read its last output`,
          },
    );
  }

  #ask(
    request: Without<Extract<Parameters<typeof sendLine>[1], { id: number; do: string }>, "id">,
    group: string,
  ): Promise<unknown> {
    if (this.#failure) return Promise.reject(new RendezvousError(this.#failure.message));
    if (this.#gone || this.#socket.destroyed) return Promise.reject(hasLeft());
    const id = ++this.#requests;
    // The server answers before its deadline unless its process is stopped, which may happen before it has answered a
    // heartbeat.
    const limit = this.#deadlineSeconds + silenceAfter(this.#outageSeconds).seconds;
    return new Promise((resolve, reject) => {
      const late = () => {
        if (this.#waiting.has(id)) this.serverIsSilent(limit);
      };
      // Data that has arrived meanwhile is read first.
      const timer = setTimeout(() => setImmediate(late), milliseconds(limit));
      const settle =
        <T>(how: (value: T) => void) =>
        (value: T) => {
          clearTimeout(timer);
          how(value);
        };
      this.#waiting.set(id, { resolve: settle(resolve), reject: settle(reject), group });
      this.#socket.ref();
      sendLine(this.#socket, { ...request, id } as Parameters<typeof sendLine>[1]);
    });
  }
}
