/** Rank 1 asks for something else than the others: `operation type length`, or what of it is given. */
import { type Group, joinWorld, type Reduction, type TypedArray } from "@terse/collectives";
import { tell, tellError } from "./tell.ts";

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

const [usual = "allReduce f32 10", odd = "allReduce f32 11"] = process.argv.slice(2);
const group = await joinWorld();
const [operation, type, length] = (group.rank === 1 ? odd : usual).split(" ") as [string, string, string];
try {
  await operations[operation]!(group, () => new types[type]!(Number(length)));
  tell({ finished: true });
} catch (error) {
  tellError(error);
}
await group.close();
