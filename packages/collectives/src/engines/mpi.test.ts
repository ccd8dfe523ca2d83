import { collectives } from "@terse/native-collectives";
import { afterAll, describe, expect, it } from "vitest";
import { engineContract } from "../engine-contract.ts";
import { joinWorld } from "../join-world.ts";
import { serveRendezvous } from "../rendezvous/server.ts";

const token = "the secret of this test";
const servers: Awaited<ReturnType<typeof serveRendezvous>>[] = [];

// Ranks in one process, which MPI calls a job of one: it sends messages to itself. test-e2e has them in processes of their own.
async function makeWorld(size: number) {
  const server = await serveRendezvous({ size, token });
  servers.push(server);
  return Promise.all(
    Array.from({ length: size }, (_, rank) =>
      joinWorld({
        engine: "mpi",
        env: {
          RANK: `${rank}`,
          WORLD_SIZE: `${size}`,
          TERSE_TOKEN: token,
          TERSE_RENDEZVOUS: `${server.host}:${server.port}`,
        },
      }),
    ),
  );
}

describe.skipIf(!collectives().hasMpi)("mpi (skipped where the build found none; TERSE_MPI names one)", () => {
  afterAll(() => Promise.all(servers.map((server) => server.close())));
  engineContract("mpi", makeWorld);
});

describe.skipIf(collectives().hasMpi)("a build without MPI (skipped where the build found one)", () => {
  it("says so, and what brings it", async () => {
    await expect(joinWorld({ engine: "mpi", env: { RANK: "0", WORLD_SIZE: "2" } })).rejects.toThrow(
      "this build has no MPI: put its compiler wrapper (mpicc) on the PATH, or name its prefix in TERSE_MPI",
    );
  });
});
