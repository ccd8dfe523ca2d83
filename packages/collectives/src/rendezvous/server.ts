import { createHash, timingSafeEqual } from "node:crypto";
import { type AddressInfo, createServer, isIP, type Server, type Socket } from "node:net";
import { RendezvousError } from "../errors.ts";
import { milliseconds } from "../milliseconds.ts";
import {
  type FromRank,
  type FromServer,
  type Hello,
  heartbeatOf,
  helloLimit,
  lineLimit,
  protocolVersion,
  type Request,
  readLines,
  sendLine,
  type Verdict,
} from "./protocol.ts";

export interface RendezvousOptions {
  /** Ranks of the world. */
  size: number;
  /** Interface to listen on. Default: this machine only. */
  host?: string;
  /** Default: any free one. */
  port?: number;
  /** Who does not know it does not get in. May be empty on this machine's loopback addresses only. */
  token: string;
  /** All ranks must have come after so long, and all to every meeting. Default 60. */
  deadlineSeconds?: number;
  /** A rank that shows no sign of life for so long is lost. Default 10. */
  silenceSeconds?: number;
  /** Attempt of the launcher; processes of another one are refused. */
  epoch?: string;
  /** The rank whose process holds this server, if one does. */
  holder?: number;
  /** Answers heartbeats for as long as this process lives, whatever JavaScript is busy with. */
  answers?: (intervalMs: number) => Answers;
}

/** What writes an empty line to connections now and then; `add` returns what `remove` wants. */
export interface Answers {
  add(fd: number): number;
  remove(number: number): void;
  stop(): void;
}

export interface RendezvousServer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** What ends the world early: a rank lost or missing, an abort. Settles only if that happens. */
  readonly verdict: Promise<Verdict>;
  /** All ranks have said goodbye. */
  readonly finished: Promise<void>;
  /** Node may end although this still listens, or (`ref`) must not. */
  unref(): void;
  ref(): void;
  close(): Promise<void>;
}

interface Peer {
  readonly hello: Hello;
  readonly socket: Socket;
  seen: number; // when the last sign of life came
  beats: boolean; // it has a heartbeat, so that silence means something
  gone: boolean; // said goodbye
}

interface Gathering {
  readonly kind: string;
  readonly members: readonly number[];
  readonly come: Map<number, { id: number; value: unknown }>;
  readonly timer: NodeJS.Timeout;
}

const strangerLimit = 256; // connections at a time that have not said who they are

const isLoopback = (host: string) => host === "localhost" || host === "::1" || /^127\./.test(host);
const digest = (text: string) => createHash("sha256").update(text).digest();
const list = (ranks: readonly number[]) => `${ranks.length === 1 ? "rank" : "ranks"} ${ranks.join(", ")}`;

/** Holds the rendezvous: a key-value service that also knows which ranks live, and tells all of them when one does not. */
export async function serveRendezvous(options: RendezvousOptions): Promise<RendezvousServer> {
  const { size, host = "127.0.0.1", port = 0, token } = options;
  if (!Number.isInteger(size) || size < 1)
    throw new RangeError(`rendezvous: the size must be 1 or more, and is ${size}`);
  if (token === "" && !isLoopback(host))
    throw new RendezvousError(
      `the rendezvous would listen on ${host} without a token; set TERSE_TOKEN to the same secret for all ranks`,
    );
  const held = new Held(options);
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: 5000 }, (socket) =>
    held.accept(socket),
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(cannotListen(error, host, port)));
    server.listen({ host, port }, resolve);
  });
  server.on("error", () => {}); // no descriptor is left for somebody who called, and who calls again
  try {
    return held.run(server);
  } catch (error) {
    server.close();
    throw error;
  }
}

function cannotListen(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const where = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const remedy =
    error.code === "EADDRINUSE" && port === 0
      ? "no port is free; see net.ipv4.ip_local_port_range"
      : error.code === "EADDRINUSE"
        ? "it is in use; choose another port (MASTER_PORT, or --master-port), or end the run that holds it"
        : error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND"
          ? "this is not an address of this machine; MASTER_ADDR must name the machine of rank 0"
          : error.code === "EACCES"
            ? "ports below 1024 need privileges; choose another one (MASTER_PORT)"
            : error.message;
  return new RendezvousError(`the rendezvous cannot listen on ${where}: ${remedy}`, [], { cause: error });
}

function settleable<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

class Held {
  readonly #options: Required<Omit<RendezvousOptions, "answers" | "holder" | "host" | "port">> & {
    holder: number | undefined;
    answers: ((intervalMs: number) => Answers) | undefined;
  };
  readonly #peers = new Map<number, Peer>();
  readonly #sockets = new Set<Socket>();
  readonly #strangers = new Set<Socket>(); // have not said who they are; the oldest first
  readonly #values = new Map<string, unknown>();
  readonly #gets = new Map<string, { peer: Peer; id: number; timer: NodeJS.Timeout }[]>();
  readonly #gatherings = new Map<string, Gathering>();
  readonly #aborted = new Map<string, Verdict>(); // groups within the world that are over
  readonly #verdict = settleable<Verdict>();
  readonly #finished = settleable<void>();
  #answers: Answers | undefined;
  #background = false; // nothing here keeps Node alive
  #over: Verdict | undefined;
  #closed = false;

  constructor(options: RendezvousOptions) {
    const { size, token, deadlineSeconds = 60, silenceSeconds = 10, epoch = "0", holder, answers } = options;
    this.#options = { size, token, deadlineSeconds, silenceSeconds, epoch, holder, answers };
  }

  run(server: Server): RendezvousServer {
    const { size, deadlineSeconds, silenceSeconds, answers } = this.#options;
    const { address, port } = server.address() as AddressInfo;
    this.#answers = answers?.(silenceSeconds * 200);
    const arrival = setTimeout(() => {
      const missing = Array.from({ length: size }, (_, rank) => rank).filter((rank) => !this.#peers.has(rank));
      if (missing.length === 0) return;
      const message = `${list(missing)} of ${size} did not arrive at the rendezvous within ${deadlineSeconds} s; see whether it started, and whether its machine reaches ${address}:${port}`;
      this.#decide({ kind: "missing", ranks: missing, message });
    }, milliseconds(deadlineSeconds));

    let before = performance.now();
    const period = Math.min(1000, silenceSeconds * 250);
    const watch = setInterval(() => {
      const now = performance.now();
      const late = now - before > 2 * period; // this process was busy or stopped: what ranks sent meanwhile is still unread
      before = now;
      for (const [rank, peer] of this.#peers) {
        if (late) peer.seen = now;
        if (peer.beats && !peer.gone && now - peer.seen > silenceSeconds * 1000)
          this.#lost(
            rank,
            `it has shown no sign of life for ${silenceSeconds} s: stopped, or its machine is not reachable`,
          );
      }
    }, period);

    const close = async () => {
      if (this.#closed) return;
      this.#closed = true;
      clearTimeout(arrival);
      clearInterval(watch);
      for (const { timer } of this.#gatherings.values()) clearTimeout(timer);
      for (const { timer } of [...this.#gets.values()].flat()) clearTimeout(timer);
      const ended = new Promise<void>((resolve) => server.close(() => resolve()));
      this.#answers?.stop();
      for (const socket of this.#sockets) socket.destroySoon();
      await ended;
    };
    return {
      host: address,
      port,
      verdict: this.#verdict.promise,
      finished: this.#finished.promise,
      unref: () => {
        server.unref();
        arrival.unref();
        watch.unref();
        this.#background = true;
      },
      ref: () => server.ref(),
      close,
      [Symbol.asyncDispose]: close,
    };
  }

  accept(socket: Socket): void {
    if (this.#background) socket.unref();
    this.#sockets.add(socket);
    this.#strangers.add(socket);
    // A rank says who it is at once: whoever is silent makes room, however many they are, and no rank is turned away.
    if (this.#strangers.size > strangerLimit) this.#strangers.values().next().value!.destroy();
    const introduction = setTimeout(() => refuse("no hello came within 10 s"), 10_000);
    introduction.unref();
    let peer: Peer | undefined;
    let refused = false; // and nothing more is heard

    const refuse = (why: string) => {
      refused = true;
      sendLine(socket, { refused: why });
      socket.destroySoon();
    };
    const bad = (why: string) => {
      if (peer) this.#lost(peer.hello.rank, `it sent garbage to the rendezvous: ${why}`);
      refuse(`this is a terse rendezvous, and ${why}`);
    };
    const first = (line: object) => {
      clearTimeout(introduction);
      this.#strangers.delete(socket);
      const hello = line as Hello;
      const why = this.#objection(hello);
      if (why !== undefined) return refuse(why);
      peer = this.#admit(hello, socket);
    };
    readLines(
      socket,
      () => (peer ? lineLimit : helloLimit),
      (line) => {
        if (refused) return;
        if (!peer) return first(line);
        peer.seen = performance.now();
        if (!("do" in line) || peer.socket !== socket) return; // a beat
        const problem = this.#serve(peer, line as FromRank);
        if (problem !== undefined) bad(problem);
      },
      bad,
    );
    socket.on("error", () => {}); // its close says the same
    socket.on("close", () => {
      clearTimeout(introduction);
      this.#sockets.delete(socket);
      this.#strangers.delete(socket);
      if (peer && peer.socket === socket && !peer.gone)
        this.#lost(
          peer.hello.rank,
          "its process ended, or its connection broke, without a goodbye; see what it said last",
        );
    });
  }

  /** Why this one may not come in. */
  #objection(hello: Hello): string | undefined {
    const { token, size, epoch } = this.#options;
    if (hello.terse !== protocolVersion)
      return `this is a terse rendezvous of protocol ${protocolVersion}, and the first line was no hello of that version`;
    if (typeof hello.token !== "string" || !timingSafeEqual(digest(hello.token), digest(token)))
      return "the token is wrong; TERSE_TOKEN must be the one that the rendezvous was started with";
    const text = [hello.epoch, hello.config, hello.host].every((x) => typeof x === "string");
    if (!text || !Number.isInteger(hello.rank) || !Number.isInteger(hello.size) || !Number.isInteger(hello.pid))
      return "the hello is not complete";
    if (hello.epoch !== epoch)
      return `this is attempt ${epoch} of the run, and rank ${hello.rank} (pid ${hello.pid}) is of attempt ${hello.epoch}; it is left over, and may be ended`;
    const who = `rank ${hello.rank} (pid ${hello.pid} on ${hello.host})`;
    if (hello.size !== size)
      return this.#refuseAll(
        `${who} was started for a world of ${hello.size} ranks, and this world has ${size}; WORLD_SIZE must be the same for all`,
      );
    if (hello.rank < 0 || hello.rank >= size)
      return `there is no rank ${hello.rank} in a world of ${size}; RANK must be 0 to ${size - 1}`;
    if (this.#over) return this.#over.message;
    const twin = this.#peers.get(hello.rank);
    if (hello.beat)
      return twin?.hello.pid === hello.pid && twin.hello.host === hello.host
        ? undefined
        : "this heartbeat belongs to no rank";
    if (twin)
      return `rank ${hello.rank} is already here (pid ${twin.hello.pid} on ${twin.hello.host}); every process needs a RANK of its own`;
    for (const other of this.#peers.values())
      if (other.hello.config !== hello.config)
        return this.#refuseAll(
          `${who} runs with another configuration or version than rank ${other.hello.rank}; start all ranks alike`,
        );
    return undefined;
  }

  /** The world can never be complete: whoever waits for it hears that at once. */
  #refuseAll(message: string): string {
    this.#decide({ kind: "refused", message });
    return message;
  }

  #admit(hello: Hello, socket: Socket): Peer {
    if (hello.beat) {
      const peer = this.#peers.get(hello.rank)!;
      peer.beats = true;
      peer.seen = performance.now();
      this.#answerBeat(socket);
      this.#set(heartbeatOf(hello.rank), null);
      return peer;
    }
    const peer: Peer = { hello, socket, seen: performance.now(), beats: false, gone: false };
    this.#peers.set(hello.rank, peer);
    const { holder = null, silenceSeconds, deadlineSeconds } = this.#options;
    sendLine(socket, { welcome: true, holder, silenceSeconds, deadlineSeconds });
    return peer;
  }

  #answerBeat(socket: Socket): void {
    const answers = this.#answers;
    // Node tells a socket's descriptor nowhere else.
    const fd = (socket as unknown as { _handle?: { fd?: number } })._handle?.fd ?? -1;
    if (!answers || fd < 0) return;
    const number = answers.add(fd);
    socket.once("close", () => answers.remove(number));
  }

  /** Returns what is wrong with the request, if anything is. */
  #serve(peer: Peer, line: FromRank): string | undefined {
    switch (line.do) {
      case "set": {
        if (typeof line.key !== "string") return "a set has no key";
        sendLine(peer.socket, { id: line.id, value: null });
        this.#set(line.key, line.value);
        return;
      }
      case "get": {
        const { key, id } = line;
        if (typeof key !== "string") return "a get has no key";
        if (this.#values.has(key)) {
          sendLine(peer.socket, { id, value: this.#values.get(key) });
          return;
        }
        const timer = this.#timer(() => {
          this.#gets.set(
            key,
            this.#gets.get(key)!.filter((waiting) => waiting.id !== id || waiting.peer !== peer),
          );
          sendLine(peer.socket, {
            id,
            error: `nobody has set ${key} within ${this.#options.deadlineSeconds} s`,
            missing: [],
          });
        });
        this.#gets.set(key, [...(this.#gets.get(key) ?? []), { peer, id, timer }]);
        return;
      }
      case "gather":
      case "trade":
      case "leave":
        return this.#gather(peer, line);
      case "abort": {
        if (typeof line.group !== "string" || typeof line.message !== "string")
          return "an abort has no group or message";
        this.#decide({ kind: "abort", group: line.group, reason: line.reason, message: line.message });
        return;
      }
      case "bye":
        peer.gone = true;
        for (const key of this.#gatherings.keys()) this.#failIfLeft(key);
        if (this.#peers.size === this.#options.size && [...this.#peers.values()].every(({ gone }) => gone))
          this.#finished.resolve();
        return;
      default:
        return "a request is unknown";
    }
  }

  #set(key: string, value: unknown): void {
    this.#values.set(key, value);
    for (const waiting of this.#gets.get(key) ?? []) {
      clearTimeout(waiting.timer);
      sendLine(waiting.peer.socket, { id: waiting.id, value });
    }
    this.#gets.delete(key);
  }

  #gather(peer: Peer, line: Extract<Request, { do: "gather" | "trade" | "leave" }>): string | undefined {
    const { rank } = peer.hello;
    const { members } = line;
    if (
      !Array.isArray(members) ||
      !members.includes(rank) ||
      !members.every((m) => Number.isInteger(m) && m >= 0 && m < this.#options.size)
    )
      return "a meeting names no such members";
    if (line.do === "trade" && (!Array.isArray(line.values) || line.values.length !== members.length))
      return "a trade has not one value per member";
    const name = line.do === "leave" ? line.group : line.key;
    if (typeof name !== "string") return "a meeting has no name";
    const key = line.do === "leave" ? `${name}/leave` : name;
    if (line.do === "leave")
      for (const member of members) {
        const other = this.#peers.get(member);
        if (other && other !== peer) sendLine(other.socket, { left: line.group, rank, value: line.value });
      }

    let gathering = this.#gatherings.get(key);
    if (!gathering) {
      const timer = this.#timer(() => this.#expire(key));
      gathering = { kind: line.do, members, come: new Map(), timer };
      this.#gatherings.set(key, gathering);
    }
    if (gathering.kind !== line.do || gathering.members.join() !== members.join())
      return `ranks do not agree about the meeting ${key}`;
    gathering.come.set(rank, { id: line.id, value: line.do === "trade" ? line.values : line.value });
    if (gathering.come.size < members.length) {
      this.#failIfLeft(key);
      return;
    }

    clearTimeout(gathering.timer);
    this.#gatherings.delete(key);
    const values = members.map((member) => gathering.come.get(member)!.value);
    members.forEach((member, place) => {
      const answer = line.do === "trade" ? values.map((each) => (each as unknown[])[place]) : values;
      this.#answer(member, { id: gathering.come.get(member)!.id, value: line.do === "leave" ? null : answer });
    });
    return;
  }

  #expire(key: string): void {
    const { come, members } = this.#gatherings.get(key)!;
    const missing = members.filter((member) => !come.has(member));
    this.#cancel(
      key,
      `${list(missing)} did not come to ${key} within ${this.#options.deadlineSeconds} s; see what it does, or allow more (deadlineSeconds)`,
      missing,
    );
  }

  /** Who has said goodbye will not come. */
  #failIfLeft(key: string): void {
    const { come, members } = this.#gatherings.get(key)!;
    const left = members.filter((member) => !come.has(member) && this.#peers.get(member)?.gone);
    if (left.length > 0)
      this.#cancel(key, `${list(left)} left the world before ${key}; see why it ended so early`, left);
  }

  #cancel(key: string, error: string, missing: number[]): void {
    const { come, timer } = this.#gatherings.get(key)!;
    clearTimeout(timer);
    this.#gatherings.delete(key);
    for (const [rank, { id }] of come) this.#answer(rank, { id, error, missing });
  }

  #answer(rank: number, line: FromServer): void {
    const peer = this.#peers.get(rank);
    if (peer) sendLine(peer.socket, line);
  }

  #timer(expired: () => void): NodeJS.Timeout {
    const timer = setTimeout(expired, milliseconds(this.#options.deadlineSeconds));
    if (this.#background) timer.unref();
    return timer;
  }

  #lost(rank: number, why: string): void {
    const peer = this.#peers.get(rank)!;
    if (this.#closed || peer.gone) return;
    const { pid, host } = peer.hello;
    this.#decide({ kind: "lost", rank, message: `rank ${rank} (pid ${pid} on ${host}) is lost: ${why}` });
  }

  #decide(verdict: Verdict): void {
    if (verdict.kind === "abort" && verdict.group !== "world") {
      if (this.#aborted.has(verdict.group)) return;
      this.#aborted.set(verdict.group, verdict);
    } else {
      if (this.#over) return;
      this.#over = verdict;
      this.#verdict.resolve(verdict);
    }
    for (const peer of this.#peers.values()) sendLine(peer.socket, { verdict });
  }
}
