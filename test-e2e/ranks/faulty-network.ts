/**
 * A network between ranks that can fail: the ranks' data connections go through this process, which counts what it carries and can
 * reset a connection, hold it back without a word, or add bytes to it. Ranks listen on 127.0.0.2 and are led here by a relay in
 * front of the rendezvous, which changes the addresses that they report each other.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";

/** One data connection: of the rank that calls and the one that listens. */
export interface Carried {
  readonly ranks: readonly [number, number];
  /** Bytes carried both ways. */
  readonly bytes: number;
  /** Ends both sides with a reset. */
  reset(): void;
  /** Ends both sides as a process does that closes its end. */
  finish(): void;
  /** From now on takes everything and passes nothing on: from within the next piece that either side says. */
  swallow(): void;
  /** Puts bytes between what the caller says. */
  add(bytes: Uint8Array): void;
}

export interface Network extends AsyncDisposable {
  /** For TERSE_RENDEZVOUS; TERSE_ADDRESS must be `address`. */
  readonly rendezvous: string;
  readonly address: string;
  readonly carried: readonly Carried[];
  /** Resolves when a connection has carried so many bytes more than now. */
  moved(bytes: number): Promise<Carried>;
}

export type Engine = "tcp" | "gloo";
/** Connections between two ranks. */
export const connectionsOf = { tcp: 3, gloo: 1 };

interface Contact {
  blob: string;
}

/** Addresses of gloo and of tcp begin with a sockaddr_in: family, port in network order, address. */
const portOf = (blob: Buffer) => blob.readUInt16BE(2);
function withPlace(blob: Buffer, host: string, port: number): string {
  const changed = Buffer.from(blob);
  changed.writeUInt16BE(port, 2);
  host.split(".").forEach((byte, i) => {
    changed[4 + i] = Number(byte);
  });
  return changed.toString("base64");
}

/** Over tcp the higher rank calls. Over gloo, of two at one address, the one with the greater port, as ports lie in memory. */
const calls = (engine: Engine, rank: number, other: number, mine: Buffer, theirs: Buffer) =>
  engine === "tcp" ? rank > other : mine.readUInt16LE(2) > theirs.readUInt16LE(2);

function linesOf(input: Socket, each: (line: string) => void): void {
  createInterface({ input })
    .on("line", each)
    .on("error", () => {}); // the socket's, once more
}

export async function openNetwork(server: { host: string; port: number }, engine: Engine): Promise<Network> {
  const address = "127.0.0.2"; // above 127.0.0.1, so that a rank that calls still calls when it is led there
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const carried: Carried[] = [];
  const waiting: { connection: (each: Carried) => number; want: number; resolve: (each: Carried) => void }[] = [];

  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {}); // the other side hears of it by its close
    socket.on("close", () => sockets.delete(socket));
    return socket;
  };
  const listen = async (each: (socket: Socket) => void): Promise<number> => {
    const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => each(keep(socket)));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return (server.address() as AddressInfo).port;
  };

  /** Leads to a rank's port. */
  const lead = (ranks: readonly [number, number], port: number): Promise<number> =>
    listen((near) => {
      const far = keep(connect({ port, host: address, noDelay: true, allowHalfOpen: true }));
      let bytes = 0;
      let swallows = false;
      const connection: Carried = {
        ranks,
        get bytes() {
          return bytes;
        },
        reset() {
          near.resetAndDestroy();
          far.resetAndDestroy();
        },
        finish() {
          near.end();
          far.end();
        },
        swallow() {
          swallows = true;
        },
        add(data) {
          far.write(data);
        },
      };
      carried.push(connection);
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        let open = true;
        from.on("data", (data) => {
          bytes += data.length;
          const passed = open ? data.subarray(0, data.length - (swallows ? 1 : 0)) : data.subarray(0, 0);
          open &&= !swallows;
          if (passed.length > 0 && to.writable && !to.write(passed)) {
            from.pause();
            to.once("drain", () => from.resume());
          }
          const ready = waiting.filter((each) => each.connection(connection) >= each.want);
          for (const each of ready) each.resolve(connection);
        });
        from.on("end", () => to.end());
        from.on("close", (failed) => (failed ? to.resetAndDestroy() : to.end()));
      }
    });

  /** Between a rank and the rendezvous: passes lines on, and changes the addresses in the answers to their exchange. */
  const relay = async (near: Socket) => {
    const far = keep(connect({ port: server.port, host: server.host, noDelay: true, allowHalfOpen: true }));
    let rank = -1;
    const exchanges = new Map<number, { members: number[]; mine: Contact[] }>();
    linesOf(near, (line) => {
      if (line !== "") {
        const said = JSON.parse(line);
        rank = said.rank ?? rank;
        if (said.do === "allToAll" && said.key.endsWith("/addresses"))
          exchanges.set(said.id, { members: said.members, mine: said.values });
      }
      if (far.writable) far.write(`${line}\n`);
    });
    near.on("end", () => far.end());
    near.on("close", () => far.destroySoon());
    far.on("end", () => near.end());
    far.on("close", () => near.destroySoon());
    let order = Promise.resolve();
    linesOf(far, (line) => {
      order = order.then(async () => {
        const heard = JSON.parse(line);
        const exchange = exchanges.get(heard.id);
        if (exchange && Array.isArray(heard.value))
          for (const [i, theirs] of (heard.value as Contact[]).entries()) {
            const [mine, other] = [exchange.mine[i]!.blob, theirs.blob].map((blob) => Buffer.from(blob, "base64"));
            if (exchange.members[i] === rank || !calls(engine, rank, exchange.members[i]!, mine!, other!)) continue;
            const port = await lead([rank, exchange.members[i]!], portOf(other!));
            theirs.blob = withPlace(other!, "127.0.0.1", port);
          }
        if (near.writable) near.write(`${JSON.stringify(heard)}\n`);
      });
    });
  };

  return {
    rendezvous: `127.0.0.1:${await listen((socket) => void relay(socket))}`,
    address,
    carried,
    moved(bytes) {
      const before = new Map(carried.map((each) => [each, each.bytes]));
      return new Promise((resolve) =>
        waiting.push({ connection: (each) => each.bytes - (before.get(each) ?? 0), want: bytes, resolve }),
      );
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await Promise.all(servers.map((each) => new Promise((resolve) => each.close(resolve))));
    },
  };
}
