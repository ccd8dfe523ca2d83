/**
 * The rendezvous, line by line: one JSON object per line, UTF-8, both ways.
 *
 *   rank → server   hello, first and once; then requests (set, get, gather, trade, leave), abort, bye
 *   server → rank   welcome or refused; then one answer per request, and news: left, verdict
 *
 * A second connection of a rank, with `beat: true` in its hello, only shows that the process lives: an empty line now and then.
 */
import type { Socket } from "node:net";

export const protocolVersion = 1;
export const helloLimit = 4096; // bytes of a line from somebody unknown
export const lineLimit = 4 << 20; // bytes of any other line
/** The key that the server sets when it hears this rank's. */
export const heartbeatOf = (rank: number) => `the heartbeat of rank ${rank}`;

export interface Hello {
  terse: number; // protocol version
  token: string;
  epoch: string; // attempt of the launcher: an old process must not join a new attempt
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
  | { id: number; do: "gather"; key: string; members: number[]; value: unknown }
  | { id: number; do: "trade"; key: string; members: number[]; values: unknown[] }
  | { id: number; do: "leave"; group: string; members: number[]; value: unknown };

export type AbortReason = "mismatch" | "aborted" | "timeout" | "transport" | "device";
export type Abort = { do: "abort"; group: string; reason: AbortReason; message: string };
export type Bye = { do: "bye" };
export type FromRank = Request | Abort | Bye;

/** Why a group is over, as the server has decided; the first one counts, and all its ranks hear the same. */
export type Verdict =
  | { kind: "lost"; rank: number; message: string }
  | { kind: "missing"; ranks: number[]; message: string }
  | { kind: "refused"; message: string }
  | { kind: "abort"; group: string; reason: AbortReason; message: string };

export type FromServer =
  // holder: the rank whose process is this server; no deadline is for ever
  | { welcome: true; holder: number | null; silenceSeconds: number; deadlineSeconds: number | null }
  | { refused: string }
  | { id: number; value: unknown }
  | { id: number; error: string; missing: number[] }
  | { left: string; rank: number; value: unknown }
  | { verdict: Verdict };

export function sendLine(socket: Socket, line: Hello | FromRank | FromServer): void {
  if (!socket.destroyed && socket.writable) socket.write(`${JSON.stringify(line)}\n`);
}

/** Cuts a stream into lines. `limit` is asked before each line; a longer one, or one that is no JSON object, is `bad`. */
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
