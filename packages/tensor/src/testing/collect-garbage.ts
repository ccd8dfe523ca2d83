import { setImmediate as nextTick } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { memory } from "../index.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Frees the tensors that nobody refers to any more, so that a test which counts tensors counts its own. */
export async function collectGarbage(): Promise<void> {
  for (let unchanged = 0; unchanged < 3; ) {
    const before = memory().tensors;
    collect();
    await nextTick();
    unchanged = memory().tensors === before ? unchanged + 1 : 0;
  }
}
