/**
 * Rank 1 blocks its event loop for longer than the rendezvous allows silence. Its heartbeat goes on, so it must not
 * count as lost.
 */
import { joinWorld } from "@terse/collectives";
import { report } from "./report.ts";

const [seconds = "3"] = process.argv.slice(2);
await using group = await joinWorld();
await group.barrier();
report({ ready: true });
if (group.rank === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(seconds) * 1000);
const x = Float32Array.of(1);
await group.allReduce(x);
report({ sum: x[0] });
