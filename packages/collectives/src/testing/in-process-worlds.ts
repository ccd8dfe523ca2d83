/**
 * Worlds whose ranks are in this process but join like separate processes do; test-e2e has ranks in processes of their
 * own.
 */
import type { EngineName } from "../engines/engines.ts";
import type { Group } from "../group.ts";
import { type JoinOptions, joinWorld } from "../join-world.ts";
import { serveRendezvous } from "../rendezvous/server.ts";
import type { RendezvousServer } from "../rendezvous/server-options.ts";

const token = "the secret of this test";
const deadlineSeconds = 300; // that a busy machine meets

export class InProcessWorlds implements AsyncDisposable {
  readonly #servers: RendezvousServer[] = [];

  /** Rejects with the error of the first rank that could not join. */
  async open(engine: EngineName, size: number, options: (rank: number) => JoinOptions = () => ({})): Promise<Group[]> {
    const server = await serveRendezvous({ size, token, deadlineSeconds });
    this.#servers.push(server);
    const env = { WORLD_SIZE: `${size}`, TERSE_TOKEN: token, TERSE_RENDEZVOUS: `${server.host}:${server.port}` };
    const joining = Array.from({ length: size }, (_, rank) =>
      joinWorld({ engine, deadlineSeconds, env: { ...env, RANK: `${rank}`, LOCAL_RANK: `${rank}` }, ...options(rank) }),
    );
    await Promise.allSettled(joining);
    return Promise.all(joining);
  }

  /** To be called when all worlds are closed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()));
  }
}
