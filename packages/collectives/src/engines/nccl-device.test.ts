import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { nodeFlags } from "../../../../tools/programs.ts";
import { joinWorld } from "../join-world.ts";
import { serveRendezvous } from "../rendezvous/server.ts";
import { everyOperation } from "../testing/every-nccl-operation.ts";
import { findNccl } from "./nccl.ts";

// On a real GPU. native/collectives/checks/nccl/on-device.sh runs this file.
const found = findNccl();
const atLeast = (minor: number) => found.available && Number(found.version!.split(".")[1]) >= minor;

/**
 * Environment for several ranks on one GPU, which NCCL refuses by default. NCCL 2.30 has a setting for it. With older
 * versions each rank claims a host of its own, so that they use sockets. Slow, and only for correctness. NVLS cannot be
 * shared.
 */
function environment(rank: number): Record<string, string> {
  const both = { NCCL_RAS_ENABLE: "0", NCCL_NVLS_ENABLE: "0", NCCL_MAX_CTAS: "2", NCCL_SOCKET_IFNAME: "lo" };
  if (found.devices > 1) return { ...both, TERSE_TEST_DEVICE: `${rank % found.devices}` };
  if (atLeast(30)) return { ...both, NCCL_MULTI_RANK_GPU_ENABLE: "1" };
  return { ...both, NCCL_HOSTID: `rank-${rank}`, NCCL_NET: "Socket", NCCL_IB_DISABLE: "1" };
}

/** Runs `size` ranks in processes of their own. The result is each one's output and exit code. */
async function ranks(size: number, what: string): Promise<{ code: number | null; output: string }[]> {
  await using server = await serveRendezvous({ size, token: "t" });
  const file = fileURLToPath(new URL("../testing/nccl-device-rank.ts", import.meta.url));
  return await Promise.all(
    Array.from({ length: size }, async (_, rank) => {
      const env = {
        ...process.env,
        ...environment(rank),
        RANK: `${rank}`,
        WORLD_SIZE: `${size}`,
        TERSE_TOKEN: "t",
        TERSE_RENDEZVOUS: `${server.host}:${server.port}`,
      };
      const child = spawn(process.execPath, [...nodeFlags, file, what], { env, timeout: 500_000 });
      let output = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (output += text));
      const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
      return { code, output: output.trim() };
    }),
  );
}

describe.skipIf(!found.available)(`NCCL on a GPU (skipped where there is none: ${found.reason})`, () => {
  it("runs every operation with one rank", async () => {
    await using group = await joinWorld({ env: {}, engine: "nccl", timeoutSeconds: 60 });
    await everyOperation(group);
  });

  it("runs every operation with two ranks", async (context) => {
    const outcomes = await ranks(2, "operations");
    const refused = outcomes.find(({ output }) => /Duplicate GPU|Multiple Ranks/.test(output));
    if (refused) return context.skip(`this NCCL does not run two ranks on one GPU: ${refused.output}`);
    expect(outcomes).toEqual(Array(2).fill({ code: 0, output: "done" }));
  });

  it("fails at the deadline when a rank does not call an operation, and ends the kernel that waits for it", async (context) => {
    const outcomes = await ranks(2, "hang");
    const refused = outcomes.find(({ output }) => /Duplicate GPU|Multiple Ranks/.test(output));
    if (refused) return context.skip(`this NCCL does not run two ranks on one GPU: ${refused.output}`);
    for (const { code, output } of outcomes) {
      expect(output).toMatch(/failed on rank [01]: NCCL has not finished it after 3 s/);
      expect(code).toBe(0);
    }
  });
});
