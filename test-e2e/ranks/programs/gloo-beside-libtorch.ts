/** Gloo and libtorch, which contains a Gloo of its own, in one process. The argument says which is opened first. */
import { readFileSync } from "node:fs";
import { joinWorld, loopback } from "@terse/collectives";
import { report } from "./report.ts";

const [order] = process.argv.slice(2);
const openCollectives = () => loopback(1)[0]!.close();
if (order === "collectives-first") await openCollectives();
const { arange, fromTypedArray } = await import("@terse/tensor");
const warm = arange(4);
await openCollectives();

await using group = await joinWorld();
const x = fromTypedArray(Float32Array.from({ length: 100_000 }, (_, i) => (i % 7) + group.rank));
x.requiresGrad = true;
const loss = x.mul(x).sum();
const [backward] = await Promise.all([loss.backward(), group.barrier()]);
const gradient = x.grad!; // 2 x
await group.allReduce(gradient);
const sum = (await gradient.toTypedArray()) as Float32Array;

const half = fromTypedArray(Float32Array.of(1.5, 256, 3, -0.25), undefined, { dtype: "bf16" });
await group.allReduce(half);
const maps = readFileSync("/proc/self/maps", "utf8");
report({
  backward: backward === undefined,
  right: sum.every((each, i) => each === 2 * (2 * (i % 7) + 1)),
  half: [...((await half.to("f32").toTypedArray()) as Float32Array)],
  libraries: ["libgloo.so", "libtorch_cpu.so"].filter((name) => maps.includes(name)),
  warm: warm.length,
});
