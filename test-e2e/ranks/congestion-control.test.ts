/** The engine tcp keeps bbr only where the other machine is far. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { farMachineObstacle, runBesideFarMachine } from "./far-machine.ts";

/** Why this machine cannot run the test; undefined where it can. */
function obstacle(): string | undefined {
  const kernel = readFileSync("/proc/sys/net/ipv4/tcp_available_congestion_control", "utf8");
  if (!kernel.includes("bbr")) return "this kernel has no bbr";
  if (spawnSync("ss", ["-V"]).status !== 0) return "there is no ss";
  return farMachineObstacle();
}

const why = obstacle();

describe.skipIf(why !== undefined)(
  `a machine whose congestion control is bbr${why ? ` (skipped: ${why})` : ""}`,
  () => {
    it.each([
      ["keeps it", "to a machine with a round trip of 30 ms", 15, "bbr"],
      ["replaces it", "to a machine without latency", 0, "reno"],
    ])("%s on connections %s", (_, __, delay, want) => {
      const setBbr = ["sh", "-c", `sysctl -qw net.ipv4.tcp_congestion_control=bbr && exec "$@"`, "sh"];
      const { stdout, stderr } = runBesideFarMachine("congestion-control.ts", delay, setBbr);
      expect(stdout, stderr).not.toBe("");
      expect(JSON.parse(stdout)).toEqual({ controls: Array(6).fill(want), sum: 3 }); // both ends of three connections
    });
  },
);
