/** Frozen weights that memory holds in bf16, beside the same weights in f32. */
import { expect, it } from "vitest";
import { call } from "../call.ts";
import { randn, zeros } from "../factories.ts";
import { manualSeed } from "../random.ts";
import { relativeError } from "../testing/python.ts";
import { createParameter } from "./create-parameter.ts";

it.each([
  ["at once", 30, false],
  ["in parts", 70_000, false],
  ["in parts by oneDNN", 70_000, true],
])("a product that converts %s is that of f32, with its gradient", async (_, rows, byOnednn) => {
  manualSeed(1);
  const held = createParameter([rows, 70], "matrix", (w) => w.normal_());
  held.requiresGrad = false;
  held.holdIn("bf16");
  const same = held.to("f32");
  const bias = randn([rows]);
  const dy = randn([2, 3, rows]);
  const [ours, plain] = [held, same].map((weight) => {
    const x = zeros([2, 3, 70]).add(1.5);
    x.requiresGrad = true;
    return { x, y: call("terse::linear", x, weight, bias, byOnednn) as typeof x };
  }) as [{ x: typeof dy; y: typeof dy }, { x: typeof dy; y: typeof dy }];
  for (const { y } of [ours, plain]) await y.mul(dy).sum().backward();
  expect(relativeError(ours.y.detach(), plain.y.detach())).toBeLessThan(1e-6);
  expect(relativeError(ours.x.grad!, plain.x.grad!)).toBeLessThan(1e-5);
});
