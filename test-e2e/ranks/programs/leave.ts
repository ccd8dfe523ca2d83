/** Ways to leave that no program should take, and none may crash on. */
import { setTimeout as sleep } from "node:timers/promises";
import { joinWorld } from "@terse/collectives";
import { tell, tellError } from "./tell.ts";

const [way] = process.argv.slice(2);
const group = await joinWorld();
const met = group.barrier();
await (way?.endsWith("pending") ? met.catch(tellError) : met); // which rank 0 may leave, and the process too, before the others do
const pending = () => {
  const x = new Float32Array(8 << 20);
  const calls = [group.allReduce(x), group.allGather(Array.from({ length: group.size }, () => x)), group.barrier()];
  calls.push(group.recv(new Float32Array(5), (group.rank + 1) % group.size));
  return Promise.all(calls);
};
switch (way) {
  case "exit-with-pending":
    if (group.rank === 0) {
      pending().catch(() => {});
      await sleep(5);
      process.exit(7);
    }
    await pending().catch(tellError);
    break;
  case "throw-with-pending":
    if (group.rank === 0) {
      pending().catch(() => {});
      setTimeout(() => {
        throw new Error("a bug of the program");
      }, 5);
    }
    await pending().catch(group.rank === 0 ? () => {} : tellError);
    break;
  case "forget-to-close": // and end by having nothing left to do
    tell({ done: true });
    break;
  case "exit-without-close":
    tell({ done: true });
    process.exit(0);
}
