/**
 * A program on a machine whose other address, 10.9.0.2, is far away (simulate-latency.py). Needs root and a TUN device.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { fileURLToPath } from "node:url";
import { netlabObstacle } from "../../tools/netlab/netlab.ts";
import { nodeFlags } from "../../tools/programs.ts";

const python = process.env["TERSE_PYTHON"] || "python3";

/** Why this machine cannot do it; undefined where it can. */
export function farMachineObstacle(): string | undefined {
  for (const [program, argument] of [
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

/** Runs a file below programs/ where 10.9.0.2 is so many milliseconds away. `before`: words before that command. */
export function runBesideFarMachine(program: string, milliseconds: number, before: readonly string[] = []) {
  const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));
  const far = [python, file("simulate-latency.py"), `${milliseconds}`];
  const node = [process.execPath, ...nodeFlags, file(`programs/${program}`)];
  return spawnSync("unshare", ["-n", ...before, ...far, ...node], { encoding: "utf8", timeout: 500_000 });
}
