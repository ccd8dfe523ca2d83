import { expect, it } from "vitest";
import { memory, ones } from "./index.ts";
import { collectGarbage } from "./testing/collect-garbage.ts";

it("lets the garbage collector free an unreferenced tensor that has no scope", async () => {
  await collectGarbage();
  const before = memory().tensors;
  const kept = ones([1000]);
  (() => {
    for (let i = 0; i < 50; i++) ones([1000]);
  })();
  await collectGarbage();
  expect(memory().tensors).toBe(before + 1);
  expect(kept.sum().item()).toBe(1000);
  kept.dispose();
});
