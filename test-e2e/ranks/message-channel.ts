import type { Socket } from "node:net";
import { deserialize, serialize } from "node:v8";

/**
 * Sends values over a socket, in order. Returns the function that sends one; `receive` is called for each that arrives.
 */
export function messageChannel<T>(socket: Socket, receive: (value: T) => void): (value: unknown) => void {
  let chunks: Buffer[] = [];
  let size = 0;
  socket.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    size += chunk.length;
    for (;;) {
      if (chunks.length > 1 && chunks[0]!.length < 4) chunks = [Buffer.concat(chunks)];
      if (size < 4 || size < 4 + chunks[0]!.readUInt32LE()) return;
      const all = Buffer.concat(chunks);
      const end = 4 + all.readUInt32LE();
      chunks = [all.subarray(end)];
      size -= end;
      receive(deserialize(all.subarray(4, end)) as T);
    }
  });
  return (value) => {
    const bytes = serialize(value);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    socket.write(Buffer.concat([length, bytes]));
  };
}
