import { afterAll } from "vitest";
import { engineContract } from "../engine-contract.ts";
import type { Group } from "../group.ts";
import { type JoinOptions, joinWorld } from "../join-world.ts";
import { serveRendezvous } from "../rendezvous/server.ts";
import { FakeNccl } from "./fake-nccl.ts";
import type { NcclOptions } from "./nccl.ts";
import { ncclBytes } from "./nccl-bytes.ts";

// A rank each on its own device, in one process: the library and the driver are stand-ins that really move data.
const fake = new FakeNccl();
const usual = fake.build();
const servers: Awaited<ReturnType<typeof serveRendezvous>>[] = [];
afterAll(async () => {
  await Promise.all(servers.map((server) => server.close()));
  fake[Symbol.dispose]();
});

async function makeWorld(size: number, options: JoinOptions & { of?: (rank: number) => NcclOptions } = {}) {
  const server = await serveRendezvous({ size, token: "t" });
  servers.push(server);
  const { of = () => usual, ...rest } = options;
  const joining = Array.from({ length: size }, (_, rank) => {
    const env = {
      RANK: `${rank}`,
      LOCAL_RANK: `${rank}`,
      WORLD_SIZE: `${size}`,
      TERSE_TOKEN: "t",
      TERSE_RENDEZVOUS: `${server.host}:${server.port}`,
    };
    return joinWorld({ env, engine: "nccl", nccl: of(rank), ...rest });
  });
  const outcomes = await Promise.allSettled(joining);
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (failed) throw failed.reason;
  return outcomes.map((outcome) => (outcome as PromiseFulfilledResult<Group>).value);
}

engineContract("nccl", (size) => makeWorld(size), {
  volumes: ncclBytes,
  headers: false,
  adds: (dtype) => dtype !== "i16",
  dividesSums: (ranks) => Math.log2(ranks) % 1 === 0,
  keepsNaN: false,
});
