/** Rank 1 calls the operation of the second argument, the others that of the first. Each is `operation type length`. */
import { type Group, joinWorld, type Reduction, type TypedArray } from "@terse/collectives";
import { report, reportError } from "./report.ts";

const types: Record<string, new (length: number) => TypedArray> = {
  u8: Uint8Array,
  f32: Float32Array,
  f64: Float64Array,
  i32: Int32Array,
};

const operations: Record<string, (group: Group, make: () => TypedArray) => Promise<unknown>> = {
  allReduce: (group, make) => group.allReduce(make()),
  max: (group, make) => group.allReduce(make(), "max" satisfies Reduction),
  reduceScatter: (group, make) => group.reduceScatter(Array.from({ length: group.size }, make)),
  allGather: (group, make) => group.allGather(Array.from({ length: group.size }, make)),
  allToAll: (group, make) =>
    group.allToAll(Array.from({ length: group.size }, make), Array.from({ length: group.size }, make)),
  broadcast: (group, make) => group.broadcast(make(), 0),
  broadcastFromRank2: (group, make) => group.broadcast(make(), 2),
  barrier: (group) => group.barrier(),
};

const [others = "allReduce f32 10", rank1 = "allReduce f32 11"] = process.argv.slice(2);
const group = await joinWorld();
const [operation, type, length] = (group.rank === 1 ? rank1 : others).split(" ") as [string, string, string];
try {
  await operations[operation]!(group, () => new types[type]!(Number(length)));
  report({ finished: true });
} catch (error) {
  reportError(error);
}
await group.close();
