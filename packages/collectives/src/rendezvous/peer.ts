import type { Socket } from "node:net";
import type { Holdings } from "./holdings.ts";
import type { Hello } from "./protocol.ts";

/** A rank that has joined the world. */
export interface Peer {
  readonly hello: Hello;
  readonly socket: Socket;
  readonly holdings: Holdings;
  heardAt: number; // when it sent anything last
  heartbeat: Socket | undefined; // the newest; then silence means that it is lost
  left: boolean; // said bye
}
