/** Rank 1 keeps JavaScript busy for longer than the rendezvous allows silence, which is no reason to call it lost. */
import { joinWorld } from "@terse/collectives";
import { tell } from "./tell.ts";

const [seconds = "3"] = process.argv.slice(2);
await using group = await joinWorld();
await group.barrier();
tell({ ready: true });
if (group.rank === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(seconds) * 1000);
const x = Float32Array.of(1);
await group.allReduce(x);
tell({ sum: x[0] });
