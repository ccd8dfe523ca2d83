import type { AddressInfo, Server, Socket } from "node:net";
import { milliseconds } from "../milliseconds.ts";
import { textOfPeer } from "../text-of-peer.ts";
import { Admission } from "./admission.ts";
import { Connections } from "./connections.ts";
import { Holdings } from "./holdings.ts";
import { sendLine } from "./lines.ts";
import { listOfRanks } from "./list-of-ranks.ts";
import { defaultOutageSeconds, silenceAfter } from "./outage.ts";
import type { Peer } from "./peer.ts";
import {
  type FromRank,
  type FromServer,
  type GroupFailure,
  type Hello,
  heartbeatOf,
  innerGroupOf,
} from "./protocol.ts";
import type { HeartbeatReplies, RendezvousOptions, RendezvousServer } from "./server-options.ts";
import { watchSilence } from "./silence-watch.ts";
import { WaitingRequests } from "./waiting-requests.ts";

const unreadLimit = 64 << 20; // bytes for a rank that does not read them

/** The world as its server knows it: who has joined, what the ranks ask, and why it has failed. */
export class ServedWorld {
  readonly #options: Required<Omit<RendezvousOptions, "answers" | "holder" | "host" | "port">> & {
    holder: number | undefined;
    answers: ((intervalMs: number) => HeartbeatReplies) | undefined;
  };
  readonly #peers = new Map<number, Peer>();
  readonly connections: Connections;
  readonly #admission: Admission;
  readonly #waiting: WaitingRequests;
  readonly #failedGroups = new Set<string>(); // split from the world
  readonly #worldFailure = Promise.withResolvers<GroupFailure>();
  readonly #finished = Promise.withResolvers<void>();
  #answers: HeartbeatReplies | undefined;
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
    this.connections = new Connections({
      size,
      outageSeconds,
      objection: (hello, from) => this.#admission.objection(hello, from),
      admit: (hello, socket) => this.#admit(hello, socket),
      serve: (peer, line, bytes) => this.#serve(peer, line, bytes),
      lost: (rank, why) => this.#lost(rank, why),
    });
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

    const watch = watchSilence(this.#peers, silence, (rank, why) => this.#lost(rank, why));
    const close = async () => {
      if (this.#closed) return;
      this.#closed = true;
      clearTimeout(arrival);
      clearInterval(watch);
      this.#waiting.clear();
      const ended = new Promise<void>((resolve) => server.close(() => resolve()));
      this.#answers?.stop();
      this.connections.close();
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
        this.connections.unref();
        this.#waiting.unref();
      },
      ref: () => server.ref(),
      close,
      [Symbol.asyncDispose]: close,
    };
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
    const inner = innerGroupOf(failure);
    if (inner !== undefined) {
      if (this.#failedGroups.has(inner)) return;
      this.#failedGroups.add(inner);
    } else {
      if (this.#failure) return;
      this.#failure = failure;
      this.#worldFailure.resolve(failure);
    }
    for (const peer of this.#peers.values()) this.#send(peer, { failure });
  }
}
