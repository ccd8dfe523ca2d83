/** For tests: parameters that go through a few steps with gradients anyone can make again. */
import type { Group } from "@terse/collectives";
import { Arena, fromTypedArray, Module, noGrad, Parameter } from "@terse/tensor";
import { type Algorithm, Optimizer } from "../index.ts";

class Vector extends Module {
  readonly weight: Parameter;
  constructor(values: readonly number[]) {
    super();
    this.weight = new Parameter(fromTypedArray(Float32Array.from(values)), { role: "vector" });
  }
}

/** The parameters after every step, for gradients given as rows, or made up when only their number is. */
export async function trajectory(
  group: Group,
  algorithm: Algorithm,
  gradients: number | readonly (readonly number[])[],
  {
    start,
    lr = 0.01,
    after,
  }: { start?: readonly number[]; lr?: number; after?: (optimizer: Optimizer) => unknown } = {},
): Promise<number[][]> {
  const rows =
    typeof gradients === "number"
      ? Array.from({ length: gradients }, (_, t) =>
          Array.from({ length: 200 }, (_, i) => (i % 11 === 3 ? 0 : Math.sin(i * 12.9898 + t * 78.233 + group.rank))),
        )
      : gradients;
  const n = rows[0]!.length;
  const arena = new Arena(new Vector(start ?? Array.from({ length: n }, (_, i) => Math.cos(i))));
  const optimizer = new Optimizer(arena, group, { algorithm });
  const visited: number[][] = [];
  for (const row of rows) {
    noGrad(() => arena.gradients.narrow(0, 0, n).copy_(fromTypedArray(Float32Array.from(row))));
    await optimizer.step({ lr });
    await after?.(optimizer);
    visited.push([...((await arena.parameters.toTypedArray()) as Float32Array).slice(0, n)]);
  }
  return visited;
}
