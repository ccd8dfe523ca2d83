import { describe, expect, it } from "vitest";
import { NotFiniteError, sgdStep } from "./index.ts";
import { open, type SgdKernels } from "./kernels.ts";
import type { SgdOptions } from "./options.ts";
import * as definition from "./testing/definition.ts";
import { anyFloats, askPython, bits, lengths, needsPython, python } from "./testing/inputs.ts";

const plain = { lr: 0.03, momentum: 0, dampening: 0, weightDecay: 0, nesterov: false };
const variants: Record<string, Omit<SgdOptions, "first">> = {
  plain,
  "with weight decay": { ...plain, weightDecay: 0.1 },
  "with momentum": { ...plain, momentum: 0.9, weightDecay: 0.1 },
  "with momentum and dampening": { ...plain, momentum: 0.9, dampening: 0.5 },
  nesterov: { ...plain, momentum: 0.9, nesterov: true, weightDecay: 0.1 },
};

describe.each(open().sgds())("sgd $implementation", (sgd: SgdKernels) => {
  it.each(Object.entries(variants))("gives the bits of the definition, for every length, %s", (_, options) => {
    for (const n of lengths)
      for (const first of [true, false]) {
        const arrays = () => [anyFloats(n + 1, 1), anyFloats(n + 3, 2), anyFloats(n + 2, 3)];
        const views = ([θ, m, g]: Float32Array[]) =>
          [θ!.subarray(1), options.momentum > 0 ? m!.subarray(3) : undefined, g!.subarray(2)] as const;
        const [mine, expected] = [arrays(), arrays()];
        const given = { ...options, first, gradientScale: 0.37 };
        expect(sgd.step(...views(mine), given)).toBe(n);
        definition.sgdStep(...views(expected), given);
        expect(mine.map(bits), `n = ${n}`).toEqual(expected.map(bits));
      }
  });

  it.skipIf(!python)(`stays within 1e-6 of torch.optim.SGD over ten steps${needsPython}`, () => {
    const small = (seed: number) => anyFloats(500, seed).map((x) => (Math.abs(x) > 2 ? 0 : x));
    const start = small(1);
    const gradients = Array.from({ length: 10 }, (_, t) => small(10 + t));
    const program = `
import json, sys, torch
request = json.load(sys.stdin)
results = []
for options in request["variants"]:
    theta = torch.nn.Parameter(torch.tensor(request["theta"], dtype=torch.float64))
    optimizer = torch.optim.SGD([theta], **options)
    for gradient in request["gradients"]:
        theta.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
    results.append(theta.tolist())
print(json.dumps(results))`;
    const torch = Object.values(variants).map(({ weightDecay, ...options }) => ({
      ...options,
      weight_decay: weightDecay,
    }));
    const request = { theta: [...start], gradients: gradients.map((g) => [...g]), variants: torch };
    const expected = askPython(program, request) as number[][];
    for (const [k, options] of Object.values(variants).entries()) {
      const θ = start.slice();
      const m = options.momentum > 0 ? new Float32Array(θ.length) : undefined;
      for (const [t, g] of gradients.entries()) sgd.step(θ, m, g, { ...options, first: t === 0 });
      const worst = Math.max(...θ.map((x, i) => Math.abs(x - expected[k]![i]!)));
      expect(worst).toBeLessThan(1e-6);
    }
  });

  it("returns the index of the first element whose change is not finite", () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY])
      for (const at of [0, 63, 64, 99]) {
        const g = anyFloats(100, 1);
        g[at] = bad;
        expect(sgd.step(anyFloats(100, 2), anyFloats(100, 3), g, { ...variants["with momentum"]!, first: false })).toBe(
          at,
        );
      }
  });
});

it("sgdStep throws NotFiniteError with the index of the element", () => {
  const g = new Float32Array([0, Number.NaN]);
  const step = () => sgdStep(new Float32Array(2), undefined, g, { ...plain, first: true });
  expect(step).toThrow(NotFiniteError);
  expect(step).toThrow("sgdStep: g[1] is NaN");
});
