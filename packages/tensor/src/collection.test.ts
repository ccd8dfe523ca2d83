import { setImmediate as nextTick } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { memory, ones } from "./index.ts";

it("lets the garbage collector free an unreferenced tensor that has no scope", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const before = memory().tensors;
  const kept = ones([1000]);
  (() => {
    for (let i = 0; i < 50; i++) ones([1000]);
  })();
  for (let i = 0; i < 50 && memory().tensors > before + 1; i++) {
    collect();
    await nextTick();
  }
  expect(memory().tensors).toBe(before + 1);
  expect(kept.sum().item()).toBe(1000);
  kept.dispose();
});
