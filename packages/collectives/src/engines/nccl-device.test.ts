import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { joinWorld } from "../join-world.ts";
import { serveRendezvous } from "../rendezvous/server.ts";
import { findNccl } from "./nccl.ts";
import { tour } from "./nccl-tour.ts";

// On a real GPU; native/collectives/nccl/on-device.sh runs this file.
const found = findNccl();
const atLeast = (minor: number) => found.available && Number(found.version!.split(".")[1]) >= minor;

/**
 * Several ranks on one device, which NCCL does not want: since 2.30 it can be told to, before that each rank says that it is on a host of
 * its own, and they talk through sockets. Slow, and only for correctness. NVLS cannot be shared.
 */
function recipe(rank: number): Record<string, string> {
  const both = { NCCL_RAS_ENABLE: "0", NCCL_NVLS_ENABLE: "0", NCCL_MAX_CTAS: "2", NCCL_SOCKET_IFNAME: "lo" };
  if (found.devices > 1) return { ...both, TERSE_TEST_DEVICE: `${rank % found.devices}` };
  if (atLeast(30)) return { ...both, NCCL_MULTI_RANK_GPU_ENABLE: "1" };
  return { ...both, NCCL_HOSTID: `rank-${rank}`, NCCL_NET: "Socket", NCCL_IB_DISABLE: "1" };
}

/** Runs a rank in each of `size` processes; what each has said, and how it ended. */
async function ranks(size: number, what: string): Promise<{ code: number | null; said: string }[]> {
  await using server = await serveRendezvous({ size, token: "t" });
  const file = fileURLToPath(new URL("nccl-device-rank.ts", import.meta.url));
  return await Promise.all(
    Array.from({ length: size }, async (_, rank) => {
      const env = {
        ...process.env,
        ...recipe(rank),
        RANK: `${rank}`,
        WORLD_SIZE: `${size}`,
        TERSE_TOKEN: "t",
        TERSE_RENDEZVOUS: `${server.host}:${server.port}`,
      };
      const child = spawn(process.execPath, ["--conditions=@terse/source", file, what], { env, timeout: 100_000 });
      let said = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
      const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
      return { code, said: said.trim() };
    }),
  );
}

describe.skipIf(!found.available)(`NCCL on a device (skipped where there is none: ${found.reason})`, () => {
  it("goes through every operation alone", async () => {
    await using group = await joinWorld({ env: {}, engine: "nccl", timeoutSeconds: 60 });
    await tour(group);
  });

  it("goes through every operation with two ranks", async (context) => {
    const ended = await ranks(2, "tour");
    const refused = ended.find(({ said }) => /Duplicate GPU|Multiple Ranks/.test(said));
    if (refused) return context.skip(`this NCCL takes no two ranks on one GPU: ${refused.said}`);
    expect(ended).toEqual(Array(2).fill({ code: 0, said: "done" }));
  });

  it("ends at the deadline where a rank does not come, with the kernel that waits for it", async (context) => {
    const ended = await ranks(2, "hang");
    const refused = ended.find(({ said }) => /Duplicate GPU|Multiple Ranks/.test(said));
    if (refused) return context.skip(`this NCCL takes no two ranks on one GPU: ${refused.said}`);
    for (const { code, said } of ended) {
      expect(said).toMatch(/failed on rank [01]: NCCL has not finished it after 3 s/);
      expect(code).toBe(0);
    }
  });
});
