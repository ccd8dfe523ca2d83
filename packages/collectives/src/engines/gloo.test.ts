import { collectives } from "@terse/native-collectives";
import { afterAll, describe } from "vitest";
import { engineContract } from "../engine-contract.ts";
import { joinWorld } from "../join-world.ts";
import { serveRendezvous } from "../rendezvous/server.ts";

const token = "the secret of this test";

// Ranks in one process, over real sockets; test-e2e has them in processes of their own.
async function makeWorld(size: number) {
  const server = await serveRendezvous({ size, token });
  const groups = await Promise.all(
    Array.from({ length: size }, (_, rank) =>
      joinWorld({
        env: {
          RANK: `${rank}`,
          WORLD_SIZE: `${size}`,
          TERSE_TOKEN: token,
          TERSE_RENDEZVOUS: `${server.host}:${server.port}`,
        },
      }),
    ),
  );
  servers.push(server);
  return groups;
}
const servers: Awaited<ReturnType<typeof serveRendezvous>>[] = [];

describe.skipIf(!collectives().hasGloo)("gloo (skipped where the build found none)", () => {
  afterAll(() => Promise.all(servers.map((server) => server.close())));
  engineContract("gloo", makeWorld);
});
