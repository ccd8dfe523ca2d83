/**
 * A network with faults: the ranks' data connections go through proxies in this process, which count bytes and can
 * reset a connection, swallow its data, or add bytes to it. Ranks listen on 127.0.0.2. A relay in front of the
 * rendezvous replaces the addresses that they exchange by those of the proxies.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { collectives } from "@terse/native-collectives";

/** One data connection. */
export interface ProxiedConnection {
  /** The rank that connects, and the one that listens. */
  readonly ranks: readonly [number, number];
  /** Bytes in both directions. */
  readonly bytes: number;
  /** Ends both sides with a reset. */
  reset(): void;
  /** Closes both sides, as a process does that closes its socket. */
  finish(): void;
  /** From the middle of the next data on, it reads from both sides and passes nothing on. */
  swallow(): void;
  /** Inserts bytes into what the connecting rank sends. */
  add(bytes: Uint8Array): void;
}

export interface FaultyNetwork extends AsyncDisposable {
  /** For TERSE_RENDEZVOUS; TERSE_ADDRESS must be `address`. */
  readonly rendezvous: string;
  readonly address: string;
  readonly connections: readonly ProxiedConnection[];
  /** Resolves with the first connection that carries so many more bytes. */
  afterBytes(bytes: number): Promise<ProxiedConnection>;
}

export type Engine = "tcp" | "gloo";
/** The engines that this build has. */
export const engines: readonly Engine[] = collectives().hasGloo ? ["tcp", "gloo"] : ["tcp"];
/** Connections between two ranks. */
export const connectionsPerPair = { tcp: 3, gloo: 1 };

interface Contact {
  blob: string;
}

/** Addresses of gloo and of tcp begin with a sockaddr_in: family, port in network order, address. */
const portOf = (blob: Buffer) => blob.readUInt16BE(2);
function withAddress(blob: Buffer, host: string, port: number): string {
  const changed = Buffer.from(blob);
  changed.writeUInt16BE(port, 2);
  host.split(".").forEach((byte, i) => {
    changed[4 + i] = Number(byte);
  });
  return changed.toString("base64");
}

/**
 * Whether a rank connects, and does not listen. Over tcp the higher rank connects; over gloo, of two at one address,
 * the one with the greater port in memory order.
 */
const connects = (engine: Engine, rank: number, other: number, mine: Buffer, theirs: Buffer) =>
  engine === "tcp" ? rank > other : mine.readUInt16LE(2) > theirs.readUInt16LE(2);

function linesOf(input: Socket, each: (line: string) => void): void {
  createInterface({ input })
    .on("line", each)
    .on("error", () => {}); // the same error as the socket's
}

export async function openNetwork(server: { host: string; port: number }, engine: Engine): Promise<FaultyNetwork> {
  const address = "127.0.0.2"; // above 127.0.0.1, so that the same rank connects when it gets a proxy's address
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const connections: ProxiedConnection[] = [];
  const waiting: {
    connection: (each: ProxiedConnection) => number;
    want: number;
    resolve: (each: ProxiedConnection) => void;
  }[] = [];

  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {}); // its close ends the other side
    socket.on("close", () => sockets.delete(socket));
    return socket;
  };
  const listen = async (each: (socket: Socket) => void): Promise<number> => {
    const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => each(keep(socket)));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return (server.address() as AddressInfo).port;
  };

  /** Opens a proxy for a rank's port. */
  const openProxy = (ranks: readonly [number, number], port: number): Promise<number> =>
    listen((source) => {
      const target = keep(connect({ port, host: address, noDelay: true, allowHalfOpen: true }));
      let bytes = 0;
      let swallows = false;
      const connection: ProxiedConnection = {
        ranks,
        get bytes() {
          return bytes;
        },
        reset() {
          source.resetAndDestroy();
          target.resetAndDestroy();
        },
        finish() {
          source.end();
          target.end();
        },
        swallow() {
          swallows = true;
        },
        add(data) {
          target.write(data);
        },
      };
      connections.push(connection);
      for (const [from, to] of [
        [source, target],
        [target, source],
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

  /** Relays lines between a rank and the rendezvous, and replaces the addresses in the answers to their exchange. */
  const relay = async (client: Socket) => {
    const upstream = keep(connect({ port: server.port, host: server.host, noDelay: true, allowHalfOpen: true }));
    let rank = -1;
    const exchanges = new Map<number, { members: number[]; mine: Contact[] }>();
    linesOf(client, (line) => {
      if (line !== "") {
        const request = JSON.parse(line);
        rank = request.rank ?? rank;
        if (request.do === "allToAll" && request.key.endsWith("/addresses"))
          exchanges.set(request.id, { members: request.members, mine: request.values });
      }
      if (upstream.writable) upstream.write(`${line}\n`);
    });
    client.on("end", () => upstream.end());
    client.on("close", () => upstream.destroySoon());
    upstream.on("end", () => client.end());
    upstream.on("close", () => client.destroySoon());
    let order = Promise.resolve();
    linesOf(upstream, (line) => {
      order = order.then(async () => {
        const answer = JSON.parse(line);
        const exchange = exchanges.get(answer.id);
        if (exchange && Array.isArray(answer.value))
          for (const [i, theirs] of (answer.value as Contact[]).entries()) {
            const [mine, other] = [exchange.mine[i]!.blob, theirs.blob].map((blob) => Buffer.from(blob, "base64"));
            if (exchange.members[i] === rank || !connects(engine, rank, exchange.members[i]!, mine!, other!)) continue;
            const port = await openProxy([rank, exchange.members[i]!], portOf(other!));
            theirs.blob = withAddress(other!, "127.0.0.1", port);
          }
        if (client.writable) client.write(`${JSON.stringify(answer)}\n`);
      });
    });
  };

  return {
    rendezvous: `127.0.0.1:${await listen((socket) => void relay(socket))}`,
    address,
    connections,
    afterBytes(bytes) {
      const before = new Map(connections.map((each) => [each, each.bytes]));
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
