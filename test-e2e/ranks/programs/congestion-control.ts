/**
 * Two ranks of the engine tcp, connected through simulate-latency.py. Reports the congestion control of both ends of
 * every connection.
 */
import { execFileSync } from "node:child_process";
import { collectives, kinds, reductions } from "@terse/native-collectives";
import { report } from "./report.ts";

const open = (rank: number) => collectives().tcp(rank, 2, "10.9.0.1", 300, 300, undefined, 10);
const [[zero, toOne], [one, toZero]] = [open(0), open(1)];
const there = toOne[1]!.slice();
there[7] = 2; // 10.9.0.2; the address of a sockaddr_in begins at byte 4
await Promise.all([zero.connect([new Uint8Array(), toZero[0]!]), one.connect([there, new Uint8Array()])]);
const xs = [new Float32Array(1000).fill(1), new Float32Array(1000).fill(2)];
await Promise.all([zero, one].map((each, i) => each.operate(kinds.allReduce, reductions.sum, -1, [xs[i]!], [], 0)));
const ends = execFileSync("ss", ["-tinHO", "state", "established", "dst", "10.9.0.2"], { encoding: "utf8" });
const controls = ends
  .trim()
  .split("\n")
  .map((end) => /\b(bbr|cubic|reno)\b/.exec(end)?.[1]);
report({ controls, sum: xs[0]![999] });
await Promise.all([zero.close(), one.close()]);
