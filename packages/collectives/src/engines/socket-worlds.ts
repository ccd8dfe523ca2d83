/** For tests: worlds whose ranks live in one process and speak over real sockets; test-e2e has them in processes of their own. */
import type { Group } from "../group.ts";
import { joinWorld } from "../join-world.ts";
import { type RendezvousServer, serveRendezvous } from "../rendezvous/server.ts";

const token = "the secret of this test";

export class SocketWorlds implements AsyncDisposable {
  readonly #servers: RendezvousServer[] = [];

  async open(engine: "tcp" | "gloo", size: number): Promise<Group[]> {
    const server = await serveRendezvous({ size, token });
    this.#servers.push(server);
    const names = { WORLD_SIZE: `${size}`, TERSE_TOKEN: token, TERSE_RENDEZVOUS: `${server.host}:${server.port}` };
    return Promise.all(
      Array.from({ length: size }, (_, rank) => joinWorld({ engine, env: { RANK: `${rank}`, ...names } })),
    );
  }

  /** When all worlds have been left. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()));
  }
}
