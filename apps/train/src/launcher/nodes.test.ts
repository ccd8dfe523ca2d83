import { createServer } from "node:net";
import { expect, it } from "vitest";
import { readArguments, type TrainArguments } from "../arguments.ts";
import { joinNodes } from "./nodes.ts";

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listens) => server.listen(0, "127.0.0.1", listens));
  const { port } = server.address() as { port: number };
  await new Promise((closed) => server.close(closed));
  return port;
}

it("names the flag where machines were given different ones", async () => {
  const endpoint = `127.0.0.1:${await freePort()}`;
  const launcher = (nnodes: number, nodeRank: number) => {
    const argv = ["train", `--nnodes=${nnodes}`, `--node-rank=${nodeRank}`, `--rdzv-endpoint=${endpoint}`];
    return joinNodes(readArguments(argv, {}) as TrainArguments);
  };
  process.env["TERSE_TOKEN"] ??= "token";
  const joined = await Promise.allSettled([launcher(2, 0), launcher(3, 1)]);
  for (const each of joined) {
    expect(each.status).toBe("rejected");
    const { message } = (each as PromiseRejectedResult).reason as Error;
    expect(message).toMatch(/a world of 3 ranks, and this world has 2; --nnodes must be the same for all/);
    expect(message).not.toMatch(/WORLD_SIZE|MASTER_|\bRANK\b/);
  }
});
