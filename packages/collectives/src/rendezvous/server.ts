import { type AddressInfo, createServer, isIP, type Server, type Socket } from "node:net";
import { RendezvousError } from "../errors.ts";
import { milliseconds } from "../milliseconds.ts";
import { textOfPeer } from "../text-of-peer.ts";
import { Admission } from "./admission.ts";
import { problemOfRequest } from "./check-lines.ts";
import { Holdings } from "./holdings.ts";
import { readLines, sendLine } from "./lines.ts";
import { listOfRanks } from "./list-of-ranks.ts";
import { checkOutage, defaultOutageSeconds, silenceAfter } from "./outage.ts";
import {
  type FromRank,
  type FromServer,
  type GroupFailure,
  type Hello,
  heartbeatOf,
  helloLimit,
  lineLimit,
} from "./protocol.ts";
import { WaitingRequests } from "./waiting-requests.ts";

/** Options of the rendezvous server. */
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
  answers?: (intervalMs: number) => HeartbeatReplies;
}

/**
 * Writes an empty line to every added connection at regular intervals. `remove` takes the number that `add` returned.
 */
export interface HeartbeatReplies {
  add(fd: number): number;
  remove(number: number): void;
  stop(): void;
}

/** The server at which the ranks of a world meet; it tells all of them when one is lost. */
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
  readonly holdings: Holdings;
  heardAt: number; // when it sent anything last
  heartbeat: Socket | undefined; // the newest; then silence means that it is lost
  left: boolean; // said bye
}

const unidentifiedLimit = 256; // open connections that have not sent a hello
const unreadLimit = 64 << 20; // bytes for a rank that does not read them

const isLoopback = (host: string) => host === "localhost" || host === "::1" || /^127\./.test(host);

/**
 * Starts the rendezvous server: a key-value store that watches the ranks' heartbeats and tells all ranks when one is
 * lost.
 */
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

class ServerState {
  readonly #options: Required<Omit<RendezvousOptions, "answers" | "holder" | "host" | "port">> & {
    holder: number | undefined;
    answers: ((intervalMs: number) => HeartbeatReplies) | undefined;
  };
  readonly #peers = new Map<number, Peer>();
  readonly #sockets = new Set<Socket>();
  readonly #unidentified = new Set<Socket>(); // no hello yet; the oldest first
  readonly #admission: Admission;
  readonly #waiting: WaitingRequests;
  readonly #failedGroups = new Map<string, GroupFailure>(); // groups split from the world
  readonly #worldFailure = Promise.withResolvers<GroupFailure>();
  readonly #finished = Promise.withResolvers<void>();
  #answers: HeartbeatReplies | undefined;
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
    this.#admission = new Admission(
      { size, token, epoch },
      {
        peers: this.#peers,
        failure: () => this.#failure?.message,
        refuseAll: (message) => this.#fail({ kind: "refused", message }),
      },
    );
    this.#waiting = new WaitingRequests(deadlineSeconds, {
      answer: (rank, line) => this.#answer(rank, line),
      hasLeft: (rank) => this.#peers.get(rank)?.left === true,
    });
  }

  run(server: Server): RendezvousServer {
    const { size, deadlineSeconds, outageSeconds, answers } = this.#options;
    const silence = silenceAfter(outageSeconds);
    const { address, port } = server.address() as AddressInfo;
    this.#answers = answers?.(silence.heartbeatMs);
    const arrival = setTimeout(() => {
      const missing = Array.from({ length: size }, (_, rank) => rank).filter((rank) => !this.#peers.has(rank));
      if (missing.length === 0) return;
      const strangers = missing.flatMap((rank) => this.#admission.wrongTokenOf(rank) ?? []);
      const why =
        strangers.join("; ") || `check that the process started, and that its machine reaches ${address}:${port}`;
      const message = `${listOfRanks(missing)} of ${size} did not connect to the rendezvous within ${deadlineSeconds} s; ${why}`;
      this.#fail({ kind: "missing", ranks: missing, message });
    }, milliseconds(deadlineSeconds));

    let before = performance.now();
    const period = Math.min(1000, silence.heartbeatMs);
    const judge = () => {
      const now = performance.now();
      for (const [rank, peer] of this.#peers)
        if (peer.heartbeat && !peer.left && now - peer.heardAt > 1000 * silence.seconds)
          this.#lost(
            rank,
            `no heartbeat for ${silence.seconds} s; its process is stopped, or its machine is not reachable`,
          );
    };
    const watch = setInterval(() => {
      const now = performance.now();
      // While this process was stopped for long, the ranks perhaps were too.
      if (now - before > 500 * silence.seconds) for (const peer of this.#peers.values()) peer.heardAt = now;
      before = now;
      setImmediate(judge); // what the ranks sent while this process was busy is read first
    }, period);

    const close = async () => {
      if (this.#closed) return;
      this.#closed = true;
      clearTimeout(arrival);
      clearInterval(watch);
      this.#waiting.clear();
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
        this.#waiting.unref();
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
    // A rank sends its hello at once. So the oldest connection without one is closed, and a flood of them keeps no rank
    // out.
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
      const why = this.#admission.objection(hello, socket.remoteAddress ?? "an unknown address");
      if (why !== undefined) return refuse(why);
      peer = this.#admit(hello, socket);
    };
    readLines(
      socket,
      () => (peer ? lineLimit : helloLimit),
      (line, bytes) => {
        if (refused) return;
        if (!peer) return first(line);
        peer.heardAt = performance.now();
        if (!("do" in line) || peer.socket !== socket) return; // a heartbeat
        const { rank } = peer.hello;
        const problem = problemOfRequest(line, rank, this.#options.size) ?? this.#serve(peer, line as FromRank, bytes);
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

  #admit(hello: Hello, socket: Socket): Peer {
    if (hello.beat) {
      const peer = this.#peers.get(hello.rank)!;
      peer.heartbeat?.destroy(); // a rank connects again where replies are missing
      peer.heartbeat = socket;
      peer.heardAt = performance.now();
      this.#answerHeartbeat(socket);
      this.#waiting.set(heartbeatOf(hello.rank), null);
      return peer;
    }
    const peer: Peer = {
      hello,
      socket,
      holdings: new Holdings(),
      heardAt: performance.now(),
      heartbeat: undefined,
      left: false,
    };
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

  /** `bytes`: of the line. Returns what is wrong with the request; undefined where nothing is. */
  #serve(peer: Peer, line: FromRank, bytes: number): string | undefined {
    const { rank } = peer.hello;
    const tooMuch = "id" in line ? peer.holdings.request(line.id, bytes) : undefined;
    if (tooMuch !== undefined) return tooMuch;
    switch (line.do) {
      case "set":
        this.#answer(rank, { id: line.id, value: null });
        this.#waiting.set(line.key, line.value);
        return peer.holdings.keep(bytes);
      case "get":
        this.#waiting.get(rank, line);
        return;
      case "allGather":
      case "allToAll":
      case "leave":
        return this.#waiting.collect(rank, line, bytes);
      case "abort": {
        this.#fail({ kind: "abort", group: line.group, reason: line.reason, message: textOfPeer(line.message) });
        return peer.holdings.keep(bytes);
      }
      case "bye":
        peer.left = true;
        this.#waiting.cancelLeft();
        if (this.#peers.size === this.#options.size && [...this.#peers.values()].every(({ left }) => left))
          this.#finished.resolve();
        return;
    }
  }

  #answer(rank: number, line: FromServer): void {
    const peer = this.#peers.get(rank);
    if (!peer) return;
    if ("id" in line) peer.holdings.answered(line.id);
    this.#send(peer, line);
  }

  #send({ socket, hello }: Peer, line: FromServer): void {
    sendLine(socket, line);
    if (socket.writableLength <= unreadLimit) return;
    socket.destroy();
    this.#lost(hello.rank, `it has not read ${unreadLimit >> 20} MiB that the rendezvous sent it`);
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
    for (const peer of this.#peers.values()) this.#send(peer, { failure });
  }
}
