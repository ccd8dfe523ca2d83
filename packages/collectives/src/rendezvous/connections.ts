import type { Socket } from "node:net";
import { problemOfRequest } from "./check-lines.ts";
import { readLines, sendLine } from "./lines.ts";
import type { Peer } from "./peer.ts";
import { type FromRank, type Hello, helloLimit, lineLimit } from "./protocol.ts";

interface World {
  readonly size: number;
  readonly outageSeconds: number;
  /** Why the process at the address `from` may not join; undefined where it may. */
  objection(hello: Hello, from: string): string | undefined;
  admit(hello: Hello, socket: Socket): Peer;
  /** Serves a request of so many bytes. Returns what is wrong with it; undefined where nothing is. */
  serve(peer: Peer, line: FromRank, bytes: number): string | undefined;
  lost(rank: number, why: string): void;
}

const unidentifiedLimit = 256; // open connections that have not sent a hello
const lastReadMilliseconds = 2000; // in which a rank must take what was written to it before the end

/** The connections to the rendezvous, from their hello on. */
export class Connections {
  readonly #world: World;
  readonly #sockets = new Set<Socket>();
  readonly #unidentified = new Set<Socket>(); // no hello yet; the oldest first
  #unref = false; // they do not keep Node alive

  constructor(world: World) {
    this.#world = world;
  }

  accept(socket: Socket): void {
    if (this.#unref) socket.unref();
    this.#sockets.add(socket);
    this.#unidentified.add(socket);
    // A rank sends its hello at once. So the oldest connection without one is closed, and a flood of them keeps no rank
    // out.
    if (this.#unidentified.size > unidentifiedLimit) this.#unidentified.values().next().value!.destroy();
    const helloSeconds = 4 + 2 * this.#world.outageSeconds; // after an outage TCP may take as long again
    const helloTimer = setTimeout(() => refuse(`no hello came within ${helloSeconds} s`), 1000 * helloSeconds);
    helloTimer.unref();
    let peer: Peer | undefined;
    let refused = false; // then nothing more is read

    const refuse = (why: string) => {
      if (refused) return; // it may send more before it notices
      refused = true;
      sendLine(socket, { refused: why });
      end(socket);
    };
    const bad = (why: string) => {
      if (peer) this.#world.lost(peer.hello.rank, `it sent invalid data to the rendezvous: ${why}`);
      refuse(`this is a terse rendezvous, and ${why}`);
    };
    const first = (line: object) => {
      clearTimeout(helloTimer);
      this.#unidentified.delete(socket);
      const hello = line as Hello;
      const why = this.#world.objection(hello, socket.remoteAddress ?? "an unknown address");
      if (why !== undefined) return refuse(why);
      peer = this.#world.admit(hello, socket);
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
        const problem =
          problemOfRequest(line, rank, this.#world.size) ?? this.#world.serve(peer, line as FromRank, bytes);
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
        this.#world.lost(
          peer.hello.rank,
          "its process ended, or its connection broke, before it left; read its last output",
        );
    });
  }

  unref(): void {
    this.#unref = true;
  }

  close(): void {
    for (const socket of this.#sockets) end(socket);
  }
}

/** Closes a connection when its rank has taken what was written to it. A rank that does not read delays nobody. */
function end(socket: Socket): void {
  socket.destroySoon();
  const timer = setTimeout(() => socket.destroy(), lastReadMilliseconds);
  socket.once("close", () => clearTimeout(timer));
}
