/** Works until the world ends: `busy`, one large all-reduce after another, or `idle`, which does nothing until told by time. */
import { setTimeout as sleep } from "node:timers/promises";
import { joinWorld } from "@terse/collectives";
import { tell, tellError } from "./tell.ts";

const [mode = "busy"] = process.argv.slice(2);
const group = await joinWorld();
try {
  await group.barrier();
  tell({ ready: true });
  if (mode === "idle") {
    for (;;) {
      await sleep(1500);
      await group.barrier();
    }
  }
  const x = new Float32Array(4 << 20);
  for (;;) await Promise.all([group.allReduce(x.fill(1)), group.barrier()]);
} catch (error) {
  tellError(error);
  const again = await group.allReduce(new Float32Array(3)).catch((each: unknown) => each);
  tell({ same: again === error });
}
await group.close();
tell({ closed: true });
