/** One rank of the tests on a device, in a process of its own: argument "tour", or "hang" where rank 0 waits for the others in vain. */
import { setTimeout as sleep } from "node:timers/promises";
import { joinWorld } from "../join-world.ts";
import type { NativeGroup } from "../native-group.ts";
import { tour } from "./nccl-tour.ts";

const [what] = process.argv.slice(2);
const group = await joinWorld({
  engine: "nccl",
  nccl: { device: Number(process.env["TERSE_TEST_DEVICE"] ?? 0) },
  timeoutSeconds: what === "hang" ? 3 : 60,
});
if (what === "hang") {
  // The others only listen: NCCL would take any call of theirs for the other half of rank 0's.
  const listens = group as NativeGroup;
  if (group.rank === 0) await group.allReduce(new Float32Array(10)).catch(() => {});
  while (!listens.failure) await sleep(10);
  console.log(listens.failure.message);
} else {
  await tour(group);
  console.log("done");
}
await group.close();
