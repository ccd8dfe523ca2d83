import { connect, type Socket } from "node:net";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { RendezvousError } from "../errors.ts";
import type { Meeting } from "../meeting.ts";
import { milliseconds } from "../milliseconds.ts";
import {
  type AbortReason,
  type FromServer,
  type Hello,
  heartbeatOf,
  lineLimit,
  protocolVersion,
  readLines,
  sendLine,
  type Verdict,
} from "./protocol.ts";

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

// An Omit that keeps the alternatives of a union apart.
type Without<T, K extends string> = T extends unknown ? Omit<T, K> : never;

/** One rank's connection to the rendezvous. It keeps Node alive only while something is asked of the server. */
export class RendezvousClient implements Meeting {
  readonly #socket: Socket;
  readonly #hello: Hello;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void; group: string }>();
  readonly #leaving = new Map<string, (rank: number, value: unknown) => void>();
  readonly #verdict: (verdict: Verdict) => void;
  #over: Verdict | undefined;
  #holder: number | null = null;
  #silenceSeconds = 10;
  #deadlineSeconds = Number.POSITIVE_INFINITY; // the server's
  #requests = 0;
  #gone = false;

  private constructor(socket: Socket, hello: Hello, verdict: (verdict: Verdict) => void) {
    this.#socket = socket;
    this.#hello = hello;
    this.#verdict = verdict;
  }

  /** Comes in. `verdict` hears why the world, or a group in it, is over. Throws RendezvousError. */
  static async connect(options: ClientOptions, verdict: (verdict: Verdict) => void): Promise<RendezvousClient> {
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
    // The server may not be there yet: try again, ever more slowly, and not all ranks at the same moment.
    for (let pause = 20; ; pause = Math.min(pause * 2, 1000)) {
      try {
        const socket = await reach(host, port, deadline);
        const client = new RendezvousClient(socket, hello, verdict);
        await client.#introduce(deadline, `${host}:${port}`);
        return client;
      } catch (error) {
        if (error instanceof RendezvousError) throw error;
        const left = deadline - performance.now();
        if (left <= 0)
          throw new RendezvousError(
            `rank ${rank} found no rendezvous at ${host}:${port} within ${deadlineSeconds} s (${(error as Error).message}); see whether it runs, and whether MASTER_ADDR and MASTER_PORT, or TERSE_RENDEZVOUS, name it`,
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

  /** A rank that shows no sign of life for so long is lost. */
  get silenceSeconds(): number {
    return this.#silenceSeconds;
  }

  /** This machine's address on the way to the server, which the other ranks can be expected to reach too. */
  get localAddress(): string {
    return (this.#socket.localAddress ?? "127.0.0.1").replace(/^::ffff:/, "");
  }

  /** Where a heartbeat connects, what it says first, how often it must beat, and after what silence its answers have ended. */
  get beat(): { host: string; port: number; hello: string; intervalMs: number; silenceMs: number } {
    return {
      intervalMs: this.#silenceSeconds * 200,
      silenceMs: this.#silenceSeconds * 1000,
      host: (this.#socket.remoteAddress ?? "").replace(/^::ffff:/, ""),
      port: this.#socket.remotePort ?? 0,
      hello: JSON.stringify({ ...this.#hello, beat: true }),
    };
  }

  async set(key: string, value: unknown): Promise<void> {
    await this.#ask({ do: "set", key, value }, "");
  }

  /** Waits until somebody has set it. */
  get(key: string): Promise<unknown> {
    return this.#ask({ do: "get", key }, "");
  }

  /** Resolves when the server hears this rank's heartbeat: from then on silence means something, on both sides. */
  async beating(): Promise<void> {
    await this.get(heartbeatOf(this.rank));
  }

  gather(key: string, members: readonly number[], value: unknown): Promise<unknown[]> {
    return this.#ask({ do: "gather", key, members: [...members], value }, key) as Promise<unknown[]>;
  }

  trade(key: string, members: readonly number[], values: readonly unknown[]): Promise<unknown[]> {
    return this.#ask({ do: "trade", key, members: [...members], values: [...values] }, key) as Promise<unknown[]>;
  }

  async leave(group: string, members: readonly number[], value: unknown): Promise<void> {
    await this.#ask({ do: "leave", group, members: [...members], value }, `${group}/leave`).catch(() => {});
    this.#leaving.delete(group);
  }

  onLeave(group: string, heard: (rank: number, value: unknown) => void): void {
    this.#leaving.set(group, heard);
  }

  /** Asks the server to end this group for all; its verdict comes back to everybody. */
  abort(group: string, reason: AbortReason, message: string): void {
    sendLine(this.#socket, { do: "abort", group, reason, message });
  }

  /** The server says nothing any more: not to heartbeats that it had answered, or (`seconds`) not to a request. */
  silent(seconds = this.#silenceSeconds): void {
    const rank = this.#holder;
    if (this.#gone || this.#over || rank === this.rank) return;
    const why = `is lost: it has shown no sign of life for ${seconds} s: stopped, or its machine is not reachable`;
    this.#judge(
      rank === null
        ? { kind: "refused", message: `the rendezvous ${why}` }
        : { kind: "lost", rank, message: `rank ${rank}, which holds the rendezvous, ${why}` },
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
    const timer = setTimeout(() => this.#socket.destroy(), 2000); // a server that does not answer is no reason to stay
    await ended;
    clearTimeout(timer);
  }

  #introduce(deadline: number, where: string): Promise<void> {
    const socket = this.#socket;
    return new Promise((resolve, reject) => {
      let welcome = false;
      const timer = setTimeout(
        () => {
          reject(
            new RendezvousError(
              `what listens at ${where} does not answer like a rendezvous; see whether its process is stopped, or MASTER_PORT another program's`,
            ),
          );
          socket.destroy();
        },
        milliseconds(Math.max(deadline - performance.now(), 1) / 1000),
      );
      readLines(
        socket,
        () => lineLimit,
        (line) => {
          const news = line as FromServer;
          if (welcome) return this.#hear(news);
          clearTimeout(timer);
          if ("welcome" in news) {
            welcome = true;
            this.#holder = news.holder;
            this.#silenceSeconds = news.silenceSeconds;
            this.#deadlineSeconds = news.deadlineSeconds ?? this.#deadlineSeconds;
            socket.unref();
            return resolve();
          }
          const why =
            "refused" in news
              ? `the rendezvous at ${where} refused rank ${this.#hello.rank}: ${news.refused}`
              : `what listens at ${where} is not a rendezvous`;
          reject(new RendezvousError(why));
          socket.destroy();
        },
        () => {
          reject(
            new RendezvousError(
              `what listens at ${where} is not a terse rendezvous; see whether MASTER_PORT is another program's`,
            ),
          );
          socket.destroy();
        },
      );
      socket.on("error", () => {}); // its close says the same
      socket.on("close", () => {
        clearTimeout(timer);
        if (welcome) return this.#ended(where);
        reject(new Error("the connection was closed"));
      });
      sendLine(socket, this.#hello);
    });
  }

  #hear(news: FromServer): void {
    if ("id" in news) {
      const waiting = this.#waiting.get(news.id);
      this.#waiting.delete(news.id);
      if (this.#waiting.size === 0) this.#socket.unref();
      if ("error" in news) waiting?.reject(new RendezvousError(news.error, news.missing));
      else waiting?.resolve(news.value);
    } else if ("left" in news) {
      this.#leaving.get(news.left)?.(news.rank, news.value);
    } else if ("verdict" in news) {
      this.#judge(news.verdict);
    }
  }

  #judge(verdict: Verdict): void {
    const inner = verdict.kind === "abort" && verdict.group !== "world" ? verdict.group : undefined;
    if (inner === undefined) this.#over ??= verdict;
    this.#verdict(verdict);
    for (const [id, { reject, group }] of this.#waiting) {
      if (inner !== undefined && !group.startsWith(`${inner}/`)) continue;
      this.#waiting.delete(id);
      reject(new RendezvousError(verdict.message, verdict.kind === "missing" ? verdict.ranks : []));
    }
    if (this.#waiting.size === 0 && !this.#gone) this.#socket.unref();
  }

  #ended(where: string): void {
    if (this.#gone || this.#over) return;
    const rank = this.#holder;
    this.#judge(
      rank === null
        ? {
            kind: "refused",
            message: `the rendezvous at ${where} is gone: its process ended, or its machine is not reachable`,
          }
        : {
            kind: "lost",
            rank,
            message: `rank ${rank} is lost: the rendezvous that it held at ${where} is gone; see what it said last`,
          },
    );
  }

  #ask(
    request: Without<Extract<Parameters<typeof sendLine>[1], { id: number; do: string }>, "id">,
    group: string,
  ): Promise<unknown> {
    if (this.#over) return Promise.reject(new RendezvousError(this.#over.message));
    if (this.#gone || this.#socket.destroyed) return Promise.reject(new RendezvousError("the rendezvous was left"));
    const id = ++this.#requests;
    // The server keeps a deadline, unless it is stopped; and it may be before it has answered a heartbeat.
    const patience = this.#deadlineSeconds + this.#silenceSeconds;
    return new Promise((resolve, reject) => {
      const late = () => {
        if (this.#waiting.has(id)) this.silent(patience);
      };
      const timer = setTimeout(() => setImmediate(late), milliseconds(patience)); // what has come meanwhile is read first
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

function reach(host: string, port: number, deadline: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 5000 });
    const timer = setTimeout(
      () => {
        reject(new Error("the connection was not answered"));
        socket.destroy();
      },
      Math.max(Math.min(deadline - performance.now(), 5000), 1),
    );
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.removeListener("error", reject);
      resolve(socket);
    });
    socket.once("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
  });
}
