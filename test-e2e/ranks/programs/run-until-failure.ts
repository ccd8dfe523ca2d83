/**
 * Runs until the world fails. `busy`: one large all-reduce after another; `idle`: a barrier every 1.5 s. Reports the
 * error, and when it came.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { joinWorld } from "@terse/collectives";
import { report, reportError } from "./report.ts";

const [mode = "busy"] = process.argv.slice(2);
const group = await joinWorld();
try {
  await group.barrier();
  report({ ready: true });
  if (mode === "idle") {
    for (;;) {
      await sleep(1500);
      await group.barrier();
    }
  }
  const x = new Float32Array(4 << 20);
  for (;;) await Promise.all([group.allReduce(x.fill(1)), group.barrier()]);
} catch (error) {
  reportError(error);
  report({ failedAt: Date.now() });
  const again = await group.allReduce(new Float32Array(3)).catch((each: unknown) => each);
  report({ same: again === error });
}
await group.close();
report({ closed: true });
