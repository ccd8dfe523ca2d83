/**
 * One rank of nccl-device.test.ts. Argument: "operations" to run them all, or "hang", where only rank 0 calls an
 * all-reduce.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { joinWorld } from "../join-world.ts";
import type { NativeGroup } from "../native-group.ts";
import { everyOperation } from "./every-nccl-operation.ts";

const [what] = process.argv.slice(2);
const group = await joinWorld({
  engine: "nccl",
  nccl: { device: Number(process.env["TERSE_TEST_DEVICE"] ?? 0) },
  timeoutSeconds: what === "hang" ? 3 : 60,
});
if (what === "hang") {
  // The others call nothing: NCCL would match any call with rank 0's.
  const native = group as NativeGroup;
  if (group.rank === 0) await group.allReduce(new Float32Array(10)).catch(() => {});
  while (!native.failure) await sleep(10);
  console.log(native.failure.message);
} else {
  await everyOperation(group);
  console.log("done");
}
await group.close();
