/**
 * The protocol of the rendezvous: one JSON object per line, UTF-8, in both directions.
 *
 *   rank → server   hello, once, as the first line; then requests (set, get, allGather, allToAll, leave), abort, bye
 *   server → rank   welcome or refused; then one answer per request, and notifications: left, failure
 *
 * Each rank opens a second connection, with `beat: true` in its hello, for its heartbeat: an empty line at regular intervals.
 */
import type { Socket } from "node:net";
import { deepest, depthOf } from "./check-lines.ts";

export const protocolVersion = 3;
export const helloLimit = 4096; // bytes of a connection's first line
export const lineLimit = 4 << 20; // bytes of any other line
/** The key that the server sets when it first hears this rank's heartbeat. */
export const heartbeatOf = (rank: number) => `the heartbeat of rank ${rank}`;

export interface Hello {
  terse: number; // protocol version
  token: string;
  epoch: string; // attempt of the launcher: a process of an earlier attempt must not join
  rank: number;
  size: number;
  config: string; // must be the same on all ranks
  pid: number;
  host: string;
  beat?: boolean;
}

export type Request =
  | { id: number; do: "set"; key: string; value: unknown }
  | { id: number; do: "get"; key: string }
  | { id: number; do: "allGather"; key: string; members: number[]; value: unknown }
  | { id: number; do: "allToAll"; key: string; members: number[]; values: unknown[] }
  | { id: number; do: "leave"; group: string; members: number[]; value: unknown };

export type AbortReason = "mismatch" | "aborted" | "timeout" | "transport" | "device";
export type Abort = { do: "abort"; group: string; reason: AbortReason; message: string };
export type Bye = { do: "bye" };
export type FromRank = Request | Abort | Bye;

/** Why a group, or the whole world, has failed. The server reports the first failure to all ranks. */
export type GroupFailure =
  | { kind: "lost"; rank: number; message: string }
  | { kind: "missing"; ranks: number[]; message: string }
  | { kind: "refused"; message: string }
  | { kind: "abort"; group: string; reason: AbortReason; message: string };

export type FromServer =
  // holder: the rank whose process runs this server; deadlineSeconds null: no deadline
  | { welcome: true; holder: number | null; outageSeconds: number; deadlineSeconds: number | null }
  | { refused: string }
  | { id: number; value: unknown }
  | { id: number; error: string; missing: number[] }
  | { left: string; rank: number; value: unknown }
  | { failure: GroupFailure };

export function sendLine(socket: Socket, line: Hello | FromRank | FromServer): void {
  if (!socket.destroyed && socket.writable) socket.write(`${JSON.stringify(line)}\n`);
}

/** Calls `each` for every line. `limit()` is the most bytes that the next line may have; a longer line, or one that is not a JSON object, goes to `bad`. */
export function readLines(
  socket: Socket,
  limit: () => number,
  each: (line: object) => void,
  bad: (why: string) => void,
): void {
  let pieces: Buffer[] = [];
  let length = 0;
  socket.on("data", (data: Buffer) => {
    let rest = data;
    while (!socket.destroyed) {
      const end = rest.indexOf(10);
      const piece = end < 0 ? rest : rest.subarray(0, end);
      length += piece.length;
      if (length > limit()) return bad(`a line is longer than ${limit()} bytes`);
      if (piece.length > 0) pieces.push(piece);
      if (end < 0) return;
      const text = Buffer.concat(pieces).toString("utf8");
      pieces = [];
      length = 0;
      rest = rest.subarray(end + 1);
      if (text === "") {
        each({});
        continue;
      }
      if (depthOf(text) > deepest) return bad(`a line is nested more than ${deepest} deep`);
      let line: unknown;
      try {
        line = JSON.parse(text);
      } catch {
        return bad("a line is not JSON");
      }
      if (typeof line !== "object" || line === null || Array.isArray(line)) return bad("a line is not a JSON object");
      each(line);
    }
  });
}
