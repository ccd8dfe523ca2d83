import { type Group, loopback } from "@terse/collectives";
import { Arena, type Module, ModuleList, manualSeed, noGrad, Parameter, randn, scope } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { dion, muon, Optimizer } from "./index.ts";
import { matrixShape } from "./matrix-shape.ts";

describe("matrixShape", () => {
  it.each([
    [
      [6, 4],
      [6, 4],
    ],
    [
      [6, 2, 3, 1],
      [6, 6],
    ],
    [[8], undefined],
    [[1, 5, 8], undefined],
  ] as const)("of %o is %o", (shape, matrix) => expect(matrixShape(shape)).toEqual(matrix));
});

/**
 * Parameters after three steps of two ranks, which begin with the same values and have the same gradients whatever the
 * shape.
 */
async function train(shape: readonly number[], algorithm: typeof muon | typeof dion): Promise<Float32Array[]> {
  const groups = loopback(2);
  const run = async (group: Group) => {
    manualSeed(7);
    const weight = new Parameter(randn([6, 12]).view(shape), { role: "matrix" });
    const arena = new Arena(Object.assign(new ModuleList<Module>([]), { weight }));
    await using optimizer = new Optimizer(arena, group, { algorithm: algorithm({}) });
    for (let step = 0; step < 3; step++)
      await scope(async () => {
        manualSeed(100 + 10 * step + group.rank);
        noGrad(() => arena.gradients.narrow(0, 0, 72).copy_(randn([72])));
        await optimizer.step({ lr: 0.02 });
      });
    return (await arena.parameters.toTypedArray()) as Float32Array;
  };
  const results: Float32Array[] = [];
  for (const result of await Promise.all(groups.map(run))) results.push(result);
  await Promise.all(groups.map((group) => group.close()));
  return results;
}

describe.each([
  ["muon", muon],
  ["dion", dion],
] as const)("%s", (_, algorithm) => {
  it("takes the filters of a convolution as the matrix of its outputs: the same bits", async () => {
    const [matrix, filters] = [await train([6, 12], algorithm), await train([6, 3, 2, 2], algorithm)];
    expect(filters).toEqual(matrix);
    expect(filters[1]).toEqual(filters[0]);
  });
});
