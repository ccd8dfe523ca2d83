/** Wrong ways to leave a world. None of them may crash. Argument: the way. */
import { setTimeout as sleep } from "node:timers/promises";
import { joinWorld } from "@terse/collectives";
import { report, reportError } from "./report.ts";

const [way] = process.argv.slice(2);
const group = await joinWorld();
const met = group.barrier();
await (way?.endsWith("pending") ? met.catch(reportError) : met); // rank 0 may leave it, and exit, before the others do
const pending = () => {
  const x = () => new Float32Array(8 << 20);
  const calls = [group.allReduce(x()), group.allGather(Array.from({ length: group.size }, x)), group.barrier()];
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
    await pending().catch(reportError);
    break;
  case "throw-with-pending":
    if (group.rank === 0) {
      pending().catch(() => {});
      setTimeout(() => {
        throw new Error("a bug of the program");
      }, 5);
    }
    await pending().catch(group.rank === 0 ? () => {} : reportError);
    break;
  case "forget-to-close": // the process ends because nothing is left to do
    report({ done: true });
    break;
  case "exit-without-close":
    report({ done: true });
    process.exit(0);
}
