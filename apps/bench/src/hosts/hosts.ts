/**
 * Processes that measure together, one for each host. Where this machine allows it, each runs in a network namespace
 * with its own link to a switch (./terse netlab); otherwise all run on this machine with emulated links. Requests go
 * over a Unix socket, which every namespace can reach.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { netlabObstacle } from "../../../../tools/netlab/netlab.ts";

export interface HostsOptions {
  readonly hosts: number;
  /**
   * Each link: its rate, in the notation of tc, and after a comma its latency: 100mbit or 100mbit,50ms. With a latency
   * it is emulated: not every kernel can delay packets. Without a link the hosts are processes on the loopback
   * interface.
   */
  readonly rate?: string | undefined;
  /** The program of every host, a module that calls `serve`. */
  readonly program: URL;
}

const answerTimeout = 3_600_000; // ms: of a hang; a host that dies closes its socket

export class Hosts implements AsyncDisposable {
  /** How the links are limited. */
  readonly links: "namespaces" | "emulated" | "unshaped";
  readonly #server: Server;
  readonly #folder: string;
  readonly #children: readonly ChildProcess[];
  readonly #sockets: readonly Socket[];
  readonly #answers: readonly AsyncIterator<string>[];

  private constructor(
    links: Hosts["links"],
    server: Server,
    folder: string,
    children: readonly ChildProcess[],
    sockets: readonly Socket[],
  ) {
    this.links = links;
    this.#server = server;
    this.#folder = folder;
    this.#children = children;
    this.#sockets = sockets;
    this.#answers = sockets.map((input) => createInterface({ input })[Symbol.asyncIterator]());
  }

  /** Starts the hosts and waits until each has connected. */
  static async open({ hosts, rate, program }: HostsOptions): Promise<Hosts> {
    const isLimited = rate !== undefined && !rate.includes(",") && netlabObstacle() === undefined;
    const links = rate === undefined ? "unshaped" : isLimited ? "namespaces" : "emulated";
    const folder = mkdtempSync(join(tmpdir(), "terse-bench-"));
    const path = join(folder, "control");
    const server = createServer();
    await new Promise<void>((done) => server.listen(path, done));
    const command = [process.execPath, ...process.execArgv, fileURLToPath(program)];
    const common = { TERSE_ENGINE: "tcp", ...process.env, OMP_NUM_THREADS: "1", TERSE_BENCH_CONTROL: path };
    const start = (argv: readonly string[], more: NodeJS.ProcessEnv) =>
      spawn(argv[0]!, argv.slice(1), { env: { ...common, ...more }, stdio: ["ignore", "inherit", "inherit"] });

    const children: ChildProcess[] = [];
    if (links === "namespaces") {
      const netlab = fileURLToPath(new URL("../../../../tools/netlab/main.ts", import.meta.url));
      const laboratory = [process.execPath, netlab, "--hosts", String(hosts), "--rate", rate!, "--", ...command];
      children.push(start(laboratory, {}));
    } else {
      const port = String(await freePort());
      for (let rank = 0; rank < hosts; rank++)
        children.push(
          start(command, {
            RANK: String(rank),
            WORLD_SIZE: String(hosts),
            MASTER_ADDR: "127.0.0.1",
            MASTER_PORT: port,
            TERSE_ADDRESS: "127.0.0.1",
            TERSE_TOKEN: "bench",
            GLOO_SOCKET_IFNAME: "lo",
            ...(links === "emulated" && { TERSE_EMULATE_LINK: rate }),
          }),
        );
    }
    try {
      return new Hosts(links, server, folder, children, await acceptHosts(server, hosts, children));
    } catch (error) {
      for (const child of children) child.kill();
      server.close();
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** Sends a request to all hosts; resolves to the answers by rank. Throws the error of the first rank that has one. */
  async ask<Answer>(request: object): Promise<Answer[]> {
    for (const socket of this.#sockets) socket.write(`${JSON.stringify(request)}\n`);
    const answers = await Promise.all(
      this.#answers.map(async (lines, rank) => {
        const { value, done } = await within(
          answerTimeout,
          lines.next(),
          `host ${rank}: no answer to ${JSON.stringify(request)}`,
        );
        if (done) throw new Error(`host ${rank} ended before it answered ${JSON.stringify(request)}`);
        return JSON.parse(value) as { answer?: Answer; error?: string };
      }),
    );
    const failed = answers.findIndex(({ error }) => error !== undefined);
    if (failed >= 0) throw new Error(`host ${failed}: ${answers[failed]!.error}`);
    return answers.map(({ answer }) => answer!);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.end();
    await Promise.all(this.#children.map((child) => ended(child)));
    this.#server.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** The socket of each host, by rank. */
function acceptHosts(server: Server, hosts: number, children: readonly ChildProcess[]): Promise<Socket[]> {
  return new Promise((done, failed) => {
    const sockets: Socket[] = [];
    for (const child of children) child.once("exit", (code) => failed(new Error(`a host ended with code ${code}`)));
    server.on("connection", (socket) => {
      socket.once("data", (greeting) => {
        sockets[Number(greeting.toString())] = socket;
        if (Object.keys(sockets).length === hosts) done(sockets);
      });
    });
  });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const timer = setTimeout(() => child.kill(), 10_000);
  await new Promise((done) => child.once("exit", done));
  clearTimeout(timer);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as { port: number };
  await new Promise((done) => server.close(done));
  return port;
}

async function within<T>(milliseconds: number, promise: Promise<T>, otherwise: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, failed) => {
    timer = setTimeout(() => failed(new Error(otherwise)), milliseconds);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
