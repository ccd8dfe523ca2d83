import { createHash, timingSafeEqual } from "node:crypto";
import { type AddressInfo, createServer, isIP, type Server, type Socket } from "node:net";
import { RendezvousError } from "../errors.ts";
import { milliseconds } from "../milliseconds.ts";
import { textOfPeer } from "../text-of-peer.ts";
import { problemOfRequest } from "./check-lines.ts";
import { readLines, sendLine } from "./lines.ts";
import { checkOutage, defaultOutageSeconds, silenceAfter } from "./outage.ts";
import {
  type FromRank,
  type FromServer,
  type GroupFailure,
  type Hello,
  heartbeatOf,
  helloLimit,
  lineLimit,
  protocolVersion,
  type Request,
} from "./protocol.ts";

export interface RendezvousOptions {
  /** Ranks of the world. */
  size: number;
  /** Interface to listen on. Default: this machine only. */
  host?: string;
  /** Default: any free one. */
  port?: number;
  /** The shared secret. A connection without it is refused. It may be empty on loopback addresses only. */
  token: string;
  /** All ranks must have connected after so long, and called every `allGather` and `allToAll`. Default 60. */
  deadlineSeconds?: number;
  /** A link may be down for so long without ending the world. Default 8. */
  outageSeconds?: number;
  /** Attempt of the launcher; processes of another attempt are refused. */
  epoch?: string;
  /** The rank whose process runs this server, if one does. */
  holder?: number;
  /** Answers heartbeats while this process lives, even when JavaScript blocks the event loop. */
  answers?: (intervalMs: number) => Answers;
}

/** Writes an empty line to every added connection at regular intervals. `remove` takes the number that `add` returned. */
export interface Answers {
  add(fd: number): number;
  remove(number: number): void;
  stop(): void;
}

export interface RendezvousServer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** Why the world failed: a rank is lost or missing, or one aborted. Settles only if that happens. */
  readonly failure: Promise<GroupFailure>;
  /** All ranks have left. */
  readonly finished: Promise<void>;
  /** After `unref` Node may exit although the server still listens; `ref` undoes that. */
  unref(): void;
  ref(): void;
  close(): Promise<void>;
}

interface Peer {
  readonly hello: Hello;
  readonly socket: Socket;
  heardAt: number; // when it sent anything last
  hasHeartbeat: boolean; // then silence means that it is lost
  left: boolean; // said bye
}

/** An allGather, allToAll or leave that not all members have called yet. */
interface PendingCall {
  readonly kind: string;
  readonly members: readonly number[];
  readonly callers: Map<number, { id: number; value: unknown }>;
  readonly timer: NodeJS.Timeout;
}

const unidentifiedLimit = 256; // open connections that have not sent a hello

const isLoopback = (host: string) => host === "localhost" || host === "::1" || /^127\./.test(host);
const digest = (text: string) => createHash("sha256").update(text).digest();
const list = (ranks: readonly number[]) => `${ranks.length === 1 ? "rank" : "ranks"} ${ranks.join(", ")}`;

/** Starts the rendezvous server: a key-value store that watches the ranks' heartbeats and tells all ranks when one is lost. */
export async function serveRendezvous(options: RendezvousOptions): Promise<RendezvousServer> {
  const { size, host = "127.0.0.1", port = 0, token } = options;
  if (!Number.isInteger(size) || size < 1)
    throw new RangeError(`rendezvous: the size must be 1 or more, and is ${size}`);
  if (options.outageSeconds !== undefined) checkOutage(options.outageSeconds);
  if (token === "" && !isLoopback(host))
    throw new RendezvousError(
      `the rendezvous would listen on ${host} without a token; set TERSE_TOKEN to the same secret for all ranks`,
    );
  const state = new ServerState(options);
  const server = createServer({ noDelay: true }, (socket) => state.accept(socket));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(cannotListen(error, host, port)));
    server.listen({ host, port }, resolve);
  });
  server.on("error", () => {}); // no file descriptor was left for a connection; its rank retries
  try {
    return state.run(server);
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
        ? "it is in use; choose another port (MASTER_PORT, or --rdzv-endpoint), or end the run that holds it"
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

class ServerState {
  readonly #options: Required<Omit<RendezvousOptions, "answers" | "holder" | "host" | "port">> & {
    holder: number | undefined;
    answers: ((intervalMs: number) => Answers) | undefined;
  };
  readonly #peers = new Map<number, Peer>();
  readonly #sockets = new Set<Socket>();
  readonly #unidentified = new Set<Socket>(); // no hello yet; the oldest first
  readonly #wrongTokens = new Map<number, string>(); // by rank, as the process called itself: its address
  readonly #values = new Map<string, unknown>();
  readonly #gets = new Map<string, { peer: Peer; id: number; timer: NodeJS.Timeout }[]>();
  readonly #calls = new Map<string, PendingCall>();
  readonly #failedGroups = new Map<string, GroupFailure>(); // groups split from the world
  readonly #worldFailure = settleable<GroupFailure>();
  readonly #finished = settleable<void>();
  #answers: Answers | undefined;
  #unref = false; // the server does not keep Node alive
  #failure: GroupFailure | undefined; // of the world
  #closed = false;

  constructor(options: RendezvousOptions) {
    const {
      size,
      token,
      deadlineSeconds = 60,
      outageSeconds = defaultOutageSeconds,
      epoch = "0",
      holder,
      answers,
    } = options;
    this.#options = { size, token, deadlineSeconds, outageSeconds, epoch, holder, answers };
  }

  run(server: Server): RendezvousServer {
    const { size, deadlineSeconds, outageSeconds, answers } = this.#options;
    const silence = silenceAfter(outageSeconds);
    const { address, port } = server.address() as AddressInfo;
    this.#answers = answers?.(silence.heartbeatMs);
    const arrival = setTimeout(() => {
      const missing = Array.from({ length: size }, (_, rank) => rank).filter((rank) => !this.#peers.has(rank));
      if (missing.length === 0) return;
      const strangers = missing.filter((rank) => this.#wrongTokens.has(rank)).map((rank) => this.#wrongTokenOf(rank));
      const why =
        strangers.join("; ") || `check that the process started, and that its machine reaches ${address}:${port}`;
      const message = `${list(missing)} of ${size} did not connect to the rendezvous within ${deadlineSeconds} s; ${why}`;
      this.#fail({ kind: "missing", ranks: missing, message });
    }, milliseconds(deadlineSeconds));

    let before = performance.now();
    const period = Math.min(1000, silence.heartbeatMs);
    const watch = setInterval(() => {
      const now = performance.now();
      const late = now - before > 2 * period; // this process was busy or stopped, and has not read what the ranks sent meanwhile
      before = now;
      for (const [rank, peer] of this.#peers) {
        if (late) peer.heardAt = now;
        if (peer.hasHeartbeat && !peer.left && now - peer.heardAt > 1000 * silence.seconds)
          this.#lost(
            rank,
            `no heartbeat for ${silence.seconds} s; its process is stopped, or its machine is not reachable`,
          );
      }
    }, period);

    const close = async () => {
      if (this.#closed) return;
      this.#closed = true;
      clearTimeout(arrival);
      clearInterval(watch);
      for (const { timer } of this.#calls.values()) clearTimeout(timer);
      for (const { timer } of [...this.#gets.values()].flat()) clearTimeout(timer);
      const ended = new Promise<void>((resolve) => server.close(() => resolve()));
      this.#answers?.stop();
      for (const socket of this.#sockets) socket.destroySoon();
      await ended;
    };
    return {
      host: address,
      port,
      failure: this.#worldFailure.promise,
      finished: this.#finished.promise,
      unref: () => {
        server.unref();
        arrival.unref();
        watch.unref();
        this.#unref = true;
      },
      ref: () => server.ref(),
      close,
      [Symbol.asyncDispose]: close,
    };
  }

  accept(socket: Socket): void {
    if (this.#unref) socket.unref();
    this.#sockets.add(socket);
    this.#unidentified.add(socket);
    // A rank sends its hello at once. So the oldest connection without one is closed, and a flood of them keeps no rank out.
    if (this.#unidentified.size > unidentifiedLimit) this.#unidentified.values().next().value!.destroy();
    const helloSeconds = 4 + 2 * this.#options.outageSeconds; // after an outage TCP may take as long again
    const helloTimer = setTimeout(() => refuse(`no hello came within ${helloSeconds} s`), 1000 * helloSeconds);
    helloTimer.unref();
    let peer: Peer | undefined;
    let refused = false; // then nothing more is read

    const refuse = (why: string) => {
      refused = true;
      sendLine(socket, { refused: why });
      socket.destroySoon();
    };
    const bad = (why: string) => {
      if (peer) this.#lost(peer.hello.rank, `it sent invalid data to the rendezvous: ${why}`);
      refuse(`this is a terse rendezvous, and ${why}`);
    };
    const first = (line: object) => {
      clearTimeout(helloTimer);
      this.#unidentified.delete(socket);
      const hello = line as Hello;
      const why = this.#objection(hello, socket.remoteAddress ?? "an unknown address");
      if (why !== undefined) return refuse(why);
      peer = this.#admit(hello, socket);
    };
    readLines(
      socket,
      () => (peer ? lineLimit : helloLimit),
      (line) => {
        if (refused) return;
        if (!peer) return first(line);
        peer.heardAt = performance.now();
        if (!("do" in line) || peer.socket !== socket) return; // a heartbeat
        const { rank } = peer.hello;
        const problem = problemOfRequest(line, rank, this.#options.size) ?? this.#serve(peer, line as FromRank);
        if (problem !== undefined) bad(problem);
      },
      bad,
    );
    socket.on("error", () => {}); // the close event follows
    socket.on("close", () => {
      clearTimeout(helloTimer);
      this.#sockets.delete(socket);
      this.#unidentified.delete(socket);
      if (peer && peer.socket === socket && !peer.left)
        this.#lost(peer.hello.rank, "its process ended, or its connection broke, before it left; read its last output");
    });
  }

  /** Why this process may not join; undefined where it may. */
  #objection(hello: Hello, from: string): string | undefined {
    const { token, size, epoch } = this.#options;
    if (hello.terse !== protocolVersion)
      return `this is a terse rendezvous of protocol ${protocolVersion}, and the first line was no hello of that version`;
    if (typeof hello.token !== "string" || !timingSafeEqual(digest(hello.token), digest(token))) {
      this.#noteWrongToken(hello.rank, from);
      return "the token is wrong; TERSE_TOKEN must be the one that the rendezvous was started with";
    }
    const text = [hello.epoch, hello.config, hello.host].every((x) => typeof x === "string");
    if (!text || !Number.isInteger(hello.rank) || !Number.isInteger(hello.size) || !Number.isInteger(hello.pid))
      return "the hello is not complete";
    if (hello.epoch !== epoch)
      return `this is attempt ${epoch} of the run, and rank ${hello.rank} (pid ${hello.pid}) is of attempt ${textOfPeer(hello.epoch, 100)}; end that process`;
    const who = `rank ${hello.rank} (pid ${hello.pid} on ${textOfPeer(hello.host, 100)})`;
    if (hello.size !== size)
      return this.#refuseAll(
        `${who} was started for a world of ${hello.size} ranks, and this world has ${size}; WORLD_SIZE must be the same for all`,
      );
    if (hello.rank < 0 || hello.rank >= size)
      return `there is no rank ${hello.rank} in a world of ${size}; RANK must be 0 to ${size - 1}`;
    if (this.#failure) return this.#failure.message;
    const present = this.#peers.get(hello.rank);
    if (hello.beat)
      return present?.hello.pid === hello.pid && present.hello.host === hello.host
        ? undefined
        : "this heartbeat belongs to no rank";
    if (present)
      return `rank ${hello.rank} has already joined (pid ${present.hello.pid} on ${textOfPeer(present.hello.host, 100)}); every process needs a RANK of its own`;
    for (const other of this.#peers.values())
      if (other.hello.config !== hello.config)
        return this.#refuseAll(
          `${who} runs with another configuration or version than rank ${other.hello.rank}; start all ranks alike`,
        );
    return undefined;
  }

  /**
   * Warns the user of this process at once, because the ranks that wait would hear of it only at the deadline. They go on waiting: anyone
   * can send a wrong token, and the rank itself may still come.
   */
  #noteWrongToken(rank: unknown, from: string): void {
    const isAwaited = Number.isInteger(rank) && (rank as number) >= 0 && (rank as number) < this.#options.size;
    if (!isAwaited || this.#peers.has(rank as number) || this.#wrongTokens.has(rank as number)) return;
    this.#wrongTokens.set(rank as number, from);
    process.emitWarning(this.#wrongTokenOf(rank as number), "TerseWarning");
  }

  #wrongTokenOf(rank: number): string {
    const from = this.#wrongTokens.get(rank);
    return `a process at ${from} that calls itself rank ${rank} was refused, because its token is wrong; TERSE_TOKEN must be the same for all ranks`;
  }

  /** The world cannot become complete: all ranks that wait for it are told. */
  #refuseAll(message: string): string {
    this.#fail({ kind: "refused", message });
    return message;
  }

  #admit(hello: Hello, socket: Socket): Peer {
    if (hello.beat) {
      const peer = this.#peers.get(hello.rank)!;
      peer.hasHeartbeat = true;
      peer.heardAt = performance.now();
      this.#answerHeartbeat(socket);
      this.#set(heartbeatOf(hello.rank), null);
      return peer;
    }
    const peer: Peer = { hello, socket, heardAt: performance.now(), hasHeartbeat: false, left: false };
    this.#peers.set(hello.rank, peer);
    const { holder = null, outageSeconds, deadlineSeconds } = this.#options;
    sendLine(socket, { welcome: true, holder, outageSeconds, deadlineSeconds });
    return peer;
  }

  #answerHeartbeat(socket: Socket): void {
    const answers = this.#answers;
    // Node has no public name for a socket's descriptor.
    const fd = (socket as unknown as { _handle?: { fd?: number } })._handle?.fd ?? -1;
    if (!answers || fd < 0) return;
    const number = answers.add(fd);
    socket.once("close", () => answers.remove(number));
  }

  /** Returns what is wrong with the request; undefined where nothing is. */
  #serve(peer: Peer, line: FromRank): string | undefined {
    switch (line.do) {
      case "set": {
        sendLine(peer.socket, { id: line.id, value: null });
        this.#set(line.key, line.value);
        return;
      }
      case "get": {
        const { key, id } = line;
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
            error: `no rank has set ${textOfPeer(key)} within ${this.#options.deadlineSeconds} s`,
            missing: [],
          });
        });
        this.#gets.set(key, [...(this.#gets.get(key) ?? []), { peer, id, timer }]);
        return;
      }
      case "allGather":
      case "allToAll":
      case "leave":
        return this.#collect(peer, line);
      case "abort": {
        this.#fail({ kind: "abort", group: line.group, reason: line.reason, message: textOfPeer(line.message) });
        return;
      }
      case "bye":
        peer.left = true;
        for (const key of this.#calls.keys()) this.#cancelIfLeft(key);
        if (this.#peers.size === this.#options.size && [...this.#peers.values()].every(({ left }) => left))
          this.#finished.resolve();
        return;
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

  #collect(peer: Peer, line: Extract<Request, { do: "allGather" | "allToAll" | "leave" }>): string | undefined {
    const { rank } = peer.hello;
    const { members } = line;
    const name = line.do === "leave" ? line.group : line.key;
    const key = line.do === "leave" ? `${name}/leave` : name;
    if (line.do === "leave")
      for (const member of members) {
        const other = this.#peers.get(member);
        if (other && other !== peer) sendLine(other.socket, { left: line.group, rank, value: line.value });
      }

    let call = this.#calls.get(key);
    if (!call) {
      const timer = this.#timer(() => this.#expire(key));
      call = { kind: line.do, members, callers: new Map(), timer };
      this.#calls.set(key, call);
    }
    if (call.kind !== line.do || call.members.join() !== members.join())
      return `its ${line.do} of ${textOfPeer(key)} does not agree with that of another rank`;
    const { callers } = call;
    callers.set(rank, { id: line.id, value: line.do === "allToAll" ? line.values : line.value });
    if (callers.size < members.length) {
      this.#cancelIfLeft(key);
      return;
    }

    clearTimeout(call.timer);
    this.#calls.delete(key);
    const values = members.map((member) => callers.get(member)!.value);
    members.forEach((member, place) => {
      const answer = line.do === "allToAll" ? values.map((each) => (each as unknown[])[place]) : values;
      this.#answer(member, { id: callers.get(member)!.id, value: line.do === "leave" ? null : answer });
    });
    return;
  }

  #expire(key: string): void {
    const { callers, members } = this.#calls.get(key)!;
    const missing = members.filter((member) => !callers.has(member));
    this.#cancel(
      key,
      `${list(missing)} did not reach ${textOfPeer(key)} within ${this.#options.deadlineSeconds} s; check what it does, or raise deadlineSeconds`,
      missing,
    );
  }

  /** A rank that has left the world will not make this call. */
  #cancelIfLeft(key: string): void {
    const { callers, members } = this.#calls.get(key)!;
    const left = members.filter((member) => !callers.has(member) && this.#peers.get(member)?.left);
    if (left.length > 0)
      this.#cancel(key, `${list(left)} left the world before ${textOfPeer(key)}; check why it ended so early`, left);
  }

  #cancel(key: string, error: string, missing: number[]): void {
    const { callers, timer } = this.#calls.get(key)!;
    clearTimeout(timer);
    this.#calls.delete(key);
    for (const [rank, { id }] of callers) this.#answer(rank, { id, error, missing });
  }

  #answer(rank: number, line: FromServer): void {
    const peer = this.#peers.get(rank);
    if (peer) sendLine(peer.socket, line);
  }

  #timer(expired: () => void): NodeJS.Timeout {
    const timer = setTimeout(expired, milliseconds(this.#options.deadlineSeconds));
    if (this.#unref) timer.unref();
    return timer;
  }

  #lost(rank: number, why: string): void {
    const peer = this.#peers.get(rank)!;
    if (this.#closed || peer.left) return;
    const { pid, host } = peer.hello;
    this.#fail({
      kind: "lost",
      rank,
      message: `rank ${rank} (pid ${pid} on ${textOfPeer(host, 100)}) is lost: ${why}`,
    });
  }

  #fail(failure: GroupFailure): void {
    if (failure.kind === "abort" && failure.group !== "world") {
      if (this.#failedGroups.has(failure.group)) return;
      this.#failedGroups.set(failure.group, failure);
    } else {
      if (this.#failure) return;
      this.#failure = failure;
      this.#worldFailure.resolve(failure);
    }
    for (const peer of this.#peers.values()) sendLine(peer.socket, { failure });
  }
}
