import type { Socket } from "node:net";
import { deserialize, serialize } from "node:v8";

/** Values over a socket, in order. Returns what says one. */
export function talk<T>(socket: Socket, hear: (value: T) => void): (value: unknown) => void {
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
      hear(deserialize(all.subarray(4, end)) as T);
    }
  });
  return (value) => {
    const said = serialize(value);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(said.length);
    socket.write(Buffer.concat([length, said]));
  };
}
