import { describe, expect, it } from "vitest";
import { adamwStep, NotFiniteError } from "./index.ts";
import { type AdamWKernels, open } from "./kernels.ts";
import type { AdamWOptions } from "./options.ts";
import * as definition from "./testing/definition.ts";
import { anyFloats, askPython, bits, lengths, needsPython, python, random, relativeError } from "./testing/inputs.ts";

const options = { lr: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0.1 };

/** θ is away from zero, so that relative errors are meaningful. The ten gradients have very different sizes. */
function problem(n: number) {
  const next = random(n);
  const θ = Float32Array.from({ length: n }, () => (next() < 0.5 ? -1 : 1) * (0.5 + next()));
  const gradients = Array.from({ length: 10 }, () =>
    Float32Array.from({ length: n }, () => (next() - 0.5) * 10 ** (-6 + 6 * next())),
  );
  return { θ, gradients };
}

/** Algorithm 2 of the paper in double precision, term by term. */
function adamwInDouble(
  θ: readonly number[],
  gradients: readonly Float32Array[],
  { lr, beta1, beta2, eps, weightDecay }: Omit<AdamWOptions, "step">,
): number[] {
  const m = θ.map(() => 0);
  const v = θ.map(() => 0);
  return gradients.reduce((before: readonly number[], g, k) => {
    const t = k + 1;
    return before.map((value, i) => {
      m[i] = beta1 * m[i]! + (1 - beta1) * g[i]!;
      v[i] = beta2 * v[i]! + (1 - beta2) * g[i]! ** 2;
      const mHat = m[i]! / (1 - beta1 ** t);
      const vHat = v[i]! / (1 - beta2 ** t);
      return value - lr * weightDecay * value - (lr * mHat) / (Math.sqrt(vHat) + eps);
    });
  }, θ) as number[];
}

function train(adamw: AdamWKernels, { θ, gradients }: ReturnType<typeof problem>): Float32Array {
  const trained = θ.slice();
  const m = new Float32Array(θ.length);
  const v = new Float32Array(θ.length);
  gradients.forEach((g, k) => {
    expect(adamw.step(trained, m, v, g, { ...options, step: k + 1 })).toBe(θ.length);
  });
  return trained;
}

let torchs: number[] | undefined; // the same for every implementation

function trainInTorch(given: ReturnType<typeof problem>): number[] {
  const program = `
import json, sys, torch
request = json.load(sys.stdin)
theta = torch.nn.Parameter(torch.tensor(request["theta"], dtype=torch.float32))
optimizer = torch.optim.AdamW([theta], lr=request["lr"], betas=(request["beta1"], request["beta2"]), eps=request["eps"], weight_decay=request["weightDecay"])
for gradient in request["gradients"]:
    theta.grad = torch.tensor(gradient, dtype=torch.float32)
    optimizer.step()
print(json.dumps(theta.tolist()))`;
  return askPython(program, {
    ...options,
    theta: [...given.θ],
    gradients: given.gradients.map((g) => [...g]),
  }) as number[];
}

describe.each(open().adamws())("adamw $implementation", (adamw: AdamWKernels) => {
  it("stays within 1e-6 of double precision over ten steps", () => {
    const given = problem(1000);
    expect(relativeError(train(adamw, given), adamwInDouble([...given.θ], given.gradients, options))).toBeLessThan(
      1e-6,
    );
  });

  it.skipIf(!python)(`stays within 1e-6 of torch.optim.AdamW over ten steps${needsPython}`, () => {
    const given = problem(1000);
    torchs ??= trainInTorch(given);
    expect(relativeError(train(adamw, given), torchs)).toBeLessThan(1e-6);
  });

  it("gives the bits of the definition, for every length, at odd offsets", () => {
    for (const n of lengths) {
      for (const step of [1, 1000]) {
        const arrays = () => [
          anyFloats(n + 3, 1),
          anyFloats(n + 5, 2),
          anyFloats(n + 7, 3).map(Math.abs),
          anyFloats(n + 1, 4),
        ];
        const mine = arrays();
        const expected = arrays();
        const views = ([θ, m, v, g]: Float32Array[]) =>
          [θ!.subarray(1, 1 + n), m!.subarray(3, 3 + n), v!.subarray(2, 2 + n), g!.subarray(1)] as const;
        expect(adamw.step(...views(mine), { ...options, step })).toBe(n);
        definition.adamwStep(...views(expected), { ...options, step });
        expect(mine.map(bits), `n = ${n}`).toEqual(expected.map(bits));
      }
    }
  });

  it("returns the index of the first element that is not finite, or whose square is not", () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, 1e30]) {
      const g = anyFloats(100, 1);
      g[70] = bad;
      g[99] = Number.NaN;
      const [θ, m, v] = [anyFloats(100, 2), anyFloats(100, 3), anyFloats(100, 4).map(Math.abs)] as const;
      expect(adamw.step(θ, m, v, g, { ...options, step: 1 })).toBe(70);
    }
  });

  it("refuses wrong lengths and a step that is not 1 or more", () => {
    const x = () => new Float32Array(8);
    expect(() => adamw.step(x(), x(), new Float32Array(7), x(), { ...options, step: 1 })).toThrow(
      "v: expected 8 floats",
    );
    for (const step of [0, -1, 1.5, Number.NaN])
      expect(() => adamw.step(x(), x(), x(), x(), { ...options, step })).toThrow("step");
  });
});

it("adamwStep throws NotFiniteError with the index of the element", () => {
  const x = () => new Float32Array(3);
  const step = () =>
    adamwStep(x(), x(), x(), new Float32Array([0, 0, Number.NEGATIVE_INFINITY]), { ...options, step: 1 });
  expect(step).toThrow(NotFiniteError);
  expect(step).toThrow("adamwStep: g[2] is -Infinity");
});
