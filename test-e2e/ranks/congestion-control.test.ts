/** The engine tcp keeps bbr only where the other machine is far. */
import { spawnSync } from "node:child_process";
import { accessSync, constants, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { netlabObstacle } from "../../tools/netlab/netlab.ts";
import { nodeFlags } from "../../tools/programs.ts";

const python = process.env["TERSE_PYTHON"] || "python3";

/** Why this machine cannot run the test; undefined where it can. */
function obstacle(): string | undefined {
  const kernel = readFileSync("/proc/sys/net/ipv4/tcp_available_congestion_control", "utf8");
  if (!kernel.includes("bbr")) return "this kernel has no bbr";
  for (const [program, argument] of [
    ["ss", "-V"],
    ["unshare", "--version"],
    [python, "--version"],
  ] as const)
    if (spawnSync(program, [argument]).status !== 0) return `there is no ${program}`;
  try {
    accessSync("/dev/net/tun", constants.W_OK);
  } catch {
    return "/dev/net/tun cannot be opened";
  }
  return netlabObstacle();
}

const why = obstacle();

describe.skipIf(why !== undefined)(
  `a machine whose congestion control is bbr${why ? ` (skipped: ${why})` : ""}`,
  () => {
    const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));
    const node = [process.execPath, ...nodeFlags, file("programs/congestion-control.ts")];

    it.each([
      ["keeps it", "to a machine with a round trip of 30 ms", 15, "bbr"],
      ["replaces it", "to a machine without latency", 0, "reno"],
    ])("%s on connections %s", (_, __, delay, want) => {
      const setBbr = ["sh", "-c", `sysctl -qw net.ipv4.tcp_congestion_control=bbr && exec "$@"`, "sh"];
      const words = ["-n", ...setBbr, python, file("simulate-latency.py"), `${delay}`, ...node];
      const { stdout, stderr } = spawnSync("unshare", words, { encoding: "utf8", timeout: 500_000 });
      expect(stdout, stderr).not.toBe("");
      expect(JSON.parse(stdout)).toEqual({ controls: Array(6).fill(want), sum: 3 }); // both ends of three connections
    });
  },
);
