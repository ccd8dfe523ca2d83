import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { collectives } from "@terse/native-collectives";
import { afterAll, describe, expect, it } from "vitest";
import { engineContract } from "../testing/engine-contract/engine-contract.ts";
import { InProcessWorlds } from "../testing/in-process-worlds.ts";

const worlds = new InProcessWorlds();

describe.skipIf(!collectives().hasGloo)("gloo (skipped where the build found none)", () => {
  afterAll(() => worlds[Symbol.asyncDispose]());
  engineContract("gloo", (size) => worlds.open("gloo", size));

  it("uses a congestion control without pacing to a nearby machine", async (context) => {
    const own = readFileSync("/proc/sys/net/ipv4/tcp_congestion_control", "utf8").trim();
    if (!own.startsWith("bbr")) return context.skip(`this machine uses ${own}`);
    const open = (rank: number) => collectives().gloo(rank, 2, "127.0.0.1", 300, 300, undefined, 10);
    const [[zero, toOne], [one, toZero]] = [open(0), open(1)];
    await Promise.all([zero.connect([new Uint8Array(), toZero[0]!]), one.connect([toOne[1]!, new Uint8Array()])]);
    const ports = [toOne[1]!, toZero[0]!].map((address) => Buffer.from(address).readUInt16BE(2)); // a sockaddr_in
    const filter = `( ${ports.map((port) => `sport = :${port} or dport = :${port}`).join(" or ")} )`;
    const { stdout, error } = spawnSync("ss", ["-tinHO", filter], { encoding: "utf8" });
    await Promise.all([zero.close(), one.close()]);
    if (error) return context.skip("the program ss is not installed");
    const ends = stdout.trim().split("\n");
    expect(ends.length).toBe(2);
    for (const end of ends) expect(end).toMatch(/\sreno /);
  });
});
