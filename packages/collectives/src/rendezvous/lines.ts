/** Lines of JSON over a socket. */
import type { Socket } from "node:net";
import type { FromRank, FromServer, Hello } from "./protocol.ts";

/** Brackets within brackets. What is nested deeper could be read, and not be written again. */
const deepest = 64;
/** Pieces of a line that are kept apart: a piece of a byte takes a hundred times as much memory. */
const mostPieces = 1024;

export function sendLine(socket: Socket, line: Hello | FromRank | FromServer): void {
  if (!socket.destroyed && socket.writable) socket.write(`${JSON.stringify(line)}\n`);
}

/**
 * Calls `each` for every line, with the bytes that it has. `limit()` is the most bytes that the next line may have. A
 * longer line, or one that is not a JSON object, goes to `bad`.
 */
export function readLines(
  socket: Socket,
  limit: () => number,
  each: (line: object, bytes: number) => void,
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
      if (pieces.length === mostPieces) pieces = [Buffer.concat(pieces)];
      if (end < 0) return;
      const bytes = length;
      const text = Buffer.concat(pieces).toString("utf8");
      pieces = [];
      length = 0;
      rest = rest.subarray(end + 1);
      if (text === "") {
        each({}, bytes);
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
      each(line, bytes);
    }
  });
}

/** How deep brackets are nested in a text of JSON. */
function depthOf(text: string): number {
  let [depth, most, inString] = [0, 0, false];
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 0x5c) i++;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x5b || code === 0x7b) most = Math.max(most, ++depth);
    else if (code === 0x5d || code === 0x7d) depth--;
  }
  return most;
}
