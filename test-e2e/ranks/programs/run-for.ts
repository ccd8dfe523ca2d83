/**
 * Runs for so many seconds by rank 0's clock. `busy`: one all-reduce after another; `idle`: one every 1.5 s. Reports
 * how many there were, and before it joins with the argument `says-when-it-joins`, that it does.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { joinWorld } from "@terse/collectives";
import { report, reportError } from "./report.ts";

const [mode, seconds, when] = process.argv.slice(2);
if (when) report({ joining: true });
const group = await joinWorld();
try {
  await group.barrier();
  report({ ready: true });
  const began = performance.now();
  const x = new Float32Array(1 << 18);
  for (let count = 1; ; count++) {
    x.fill(1);
    x[0] = group.rank > 0 || performance.now() - began < 1000 * Number(seconds) ? 1 : 0;
    await group.allReduce(x, "min");
    if (x[0] === 0) {
      report({ count, last: x[1] });
      break;
    }
    if (mode === "idle") await sleep(1500);
  }
} catch (error) {
  reportError(error);
}
await group.close();
report({ closed: true });
