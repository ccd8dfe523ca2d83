import { describe, expect, it } from "vitest";
import { lionStep, lionVote, NotFiniteError } from "./index.ts";
import { type LionKernels, open } from "./kernels.ts";
import * as definition from "./testing/definition.ts";
import { anyBytes, anyFloats, askPython, bits, lengths, needsPython, python, random } from "./testing/inputs.ts";

const betas = { beta1: 0.9, beta2: 0.99 };
const rates = { lr: 0.01, weightDecay: 0.1, ...betas };
const change = { keep: 1 - 0.01 * 0.1, scale: -0.01 };

// Lion in float64 from the paper's formula, three steps; equal to lion-pytorch to the last digit. Element 3 never
// leaves zero.
const golden = {
  gradients: [
    [0.5, -0.25, 0, 0, 1],
    [-0.5, -0.25, 1, 0, -0.05],
    [0.1, 3, -1, 0, -0.2],
  ],
  θ0: [1, -1, 0.5, 0, 2],
  θ: [
    [0.989, -0.989, 0.4995, 0, 1.988],
    [0.998011, -0.978011, 0.4890005, 0, 1.976012],
    [0.98701299, -0.98703299, 0.4985115, 0, 1.98403599],
  ],
  m3: [0.0009505, 0.02507475, -0.0001, 0, 0.007306],
};

interface Run {
  readonly θ: readonly number[];
  readonly gradients: readonly (readonly number[])[];
}

/** 200 steps, in which element 0 never has a gradient; all numbers are fp32. */
const long: Run = (() => {
  const next = random(5);
  const numbers = () => Array.from({ length: 40 }, () => Math.fround(2 * next() - 1));
  return { θ: numbers(), gradients: Array.from({ length: 200 }, () => [0, ...numbers().slice(1)]) };
})();

const runs = {
  "200 steps in fp32": { ...long, dtype: "float32" },
  "200 steps": { ...long, dtype: "float64" },
  "the golden steps": { θ: golden.θ0, gradients: golden.gradients, dtype: "float64" },
};

/** lion-pytorch's update in PyTorch: θ after each step of each run. */
function inTorch(): Record<keyof typeof runs, number[][]> {
  const program = `
import json, sys, torch
request = json.load(sys.stdin)
lr, wd, beta1, beta2 = (request[name] for name in ("lr", "weightDecay", "beta1", "beta2"))
visited = {}
for name, run in request["runs"].items():
    dtype = getattr(torch, run["dtype"])
    theta = torch.tensor(run["θ"], dtype=dtype)
    m = torch.zeros_like(theta)
    visited[name] = []
    for gradient in run["gradients"]:
        g = torch.tensor(gradient, dtype=dtype)
        theta.mul_(1 - lr * wd)
        theta.add_(m.clone().mul_(beta1).add_(g, alpha=1 - beta1).sign_(), alpha=-lr)
        m.mul_(beta2).add_(g, alpha=1 - beta2)
        visited[name].append(theta.tolist())
print(json.dumps(visited))`;
  torchs ??= askPython(program, { ...rates, runs }) as NonNullable<typeof torchs>;
  return torchs;
}
let torchs: ReturnType<typeof inTorch> | undefined;

const furthest = (actual: ArrayLike<number>, expected: readonly number[]): number =>
  expected.reduce((most, value, i) => Math.max(most, Math.abs(actual[i]! - value)), 0);

const close = (actual: Float32Array, expected: readonly number[]) => {
  actual.forEach((value, i) => {
    expect(Math.abs(value - expected[i]!)).toBeLessThanOrEqual(1e-6);
  });
};

/** A copy of x at an odd offset inside a larger array of sentinels. */
function withSentinels(x: Float32Array) {
  const all = new Float32Array(x.length + 6).fill(-77.5);
  all.set(x, 3);
  return { all, x: all.subarray(3, 3 + x.length) };
}

function eachLength(check: (n: number) => void): void {
  for (const n of lengths) check(n);
}

const twoSides = (n: number) =>
  [0, 1].map(() => ({
    θ: withSentinels(anyFloats(n, n)),
    m: withSentinels(anyFloats(n, n + 1)),
    g: withSentinels(cancelling(n)),
    wire: new Uint8Array(Math.ceil(n / 8)),
  })) as [Side, Side];
interface Side {
  θ: ReturnType<typeof withSentinels>;
  m: ReturnType<typeof withSentinels>;
  g: ReturnType<typeof withSentinels>;
  wire: Uint8Array;
}

/**
 * Gradients; some cancel the momentum: β₁ m + (1 − β₁) g is exactly zero for g = m = 0, and nearly zero for g = −9 m.
 */
function cancelling(n: number): Float32Array {
  const m = anyFloats(n, n + 1);
  const next = random(n);
  return anyFloats(n, n + 2).map((g, i) => (next() < 0.3 ? -9 * m[i]! : m[i] === 0 ? 0 : g));
}

const everything = (side: Side) => [bits(side.θ.all), bits(side.m.all), bits(side.g.all), [...side.wire]];

describe.each(open().lions())("lion $implementation", (lion: LionKernels) => {
  it("takes the three golden steps, and does not move an exact zero", () => {
    const θ = new Float32Array(golden.θ0);
    const m = new Float32Array(5);
    golden.gradients.forEach((g, k) => {
      expect(lion.step(θ, m, new Float32Array(g), { ...rates, zero: "hold" })).toBe(5);
      close(θ, golden.θ[k]!);
      expect(θ[3]).toBe(0);
    });
    close(m, golden.m3);
  });

  it.skipIf(!python)(`stays within 1e-6 of lion-pytorch for 200 steps${needsPython}`, () => {
    const expected = inTorch()["200 steps in fp32"];
    const [θ, m] = [new Float32Array(long.θ), new Float32Array(long.θ.length)];
    for (const [t, g] of long.gradients.entries()) {
      lion.step(θ, m, new Float32Array(g), { ...rates, zero: "hold" });
      expect(furthest(θ, expected[t]!), `step ${t}`).toBeLessThanOrEqual(1e-6);
    }
    expect(furthest(θ, long.θ)).toBeGreaterThan(0.1);
  });

  it("takes the same golden steps in two halves, where nothing is exactly zero", () => {
    const moving = [0, 1, 4];
    const θ = Float32Array.from(moving, (i) => golden.θ0[i]!);
    const m = new Float32Array(3);
    const wire = new Uint8Array(1);
    golden.gradients.forEach((g, k) => {
      lion.vote(
        wire,
        m,
        Float32Array.from(moving, (i) => g[i]!),
        { ...betas, zero: "plus" },
      );
      lion.applySigns(θ, wire, change);
      close(
        θ,
        moving.map((i) => golden.θ[k]![i]!),
      );
    });
  });

  it.each(["plus", "minus", "hold"] as const)(
    "steps with the bits of the definition, zero %s, for every length, at odd offsets",
    (zero) => {
      eachLength((n) => {
        const [mine, expected] = twoSides(n);
        expect(lion.step(mine.θ.x, mine.m.x, mine.g.x, { ...rates, zero })).toBe(n);
        definition.lionStep(expected.θ.x, expected.m.x, expected.g.x, { ...rates, zero });
        expect(everything(mine), `n = ${n}`).toEqual(everything(expected));
      });
    },
  );

  it.each(["plus", "minus"] as const)(
    "votes with the bits of the definition, zero %s, for every length, at odd offsets",
    (zero) => {
      eachLength((n) => {
        const [mine, expected] = twoSides(n);
        expect(lion.vote(mine.wire, mine.m.x, mine.g.x, { ...betas, zero })).toBe(n);
        definition.lionVote(expected.wire, expected.m.x, expected.g.x, { ...betas, zero });
        expect(everything(mine), `n = ${n}`).toEqual(everything(expected));
      });
    },
  );

  it("mixes with the bits of the definition, for every length, at odd offsets", () => {
    eachLength((n) => {
      const [mine, expected] = twoSides(n);
      lion.mix(mine.θ.x, mine.m.x, mine.g.x, betas);
      definition.lionMix(expected.θ.x, expected.m.x, expected.g.x, betas);
      expect(everything(mine), `n = ${n}`).toEqual(everything(expected));
    });
  });

  it("mixes elements that are not finite as they are", () => {
    for (const n of [1, 64, 70]) {
      const [c, m, g] = [new Float32Array(n), anyFloats(n, 1), anyFloats(n, 2)];
      g[n - 1] = Number.POSITIVE_INFINITY;
      lion.mix(c, m, g, betas);
      expect([c[n - 1], m[n - 1]]).toEqual([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]);
      expect(c.slice(0, n - 1).every(Number.isFinite)).toBe(true);
    }
  });

  it.each(["plus", "minus"] as const)("steps with the bits of a vote and applySigns, zero %s", (zero) => {
    eachLength((n) => {
      const [whole, halves] = twoSides(n);
      lion.step(whole.θ.x, whole.m.x, whole.g.x, { ...rates, zero });
      lion.vote(halves.wire, halves.m.x, halves.g.x, { ...betas, zero });
      lion.applySigns(halves.θ.x, halves.wire, change);
      halves.wire.fill(0);
      expect(everything(halves), `n = ${n}`).toEqual(everything(whole));
    });
  });

  it("applies signs, ternary signs and tallies with the bits of the definition", () => {
    eachLength((n) => {
      const planes = [0, 1, 2, 3].map((k) => anyBytes(Math.ceil(n / 8) + 1, n + k).subarray(1)) as [
        Uint8Array,
        Uint8Array,
        Uint8Array,
        Uint8Array,
      ];
      const [mine, expected] = twoSides(n);
      lion.applySigns(mine.θ.x, planes[0], change);
      definition.applySigns(expected.θ.x, planes[0], change);
      expect(everything(mine), `signs, n = ${n}`).toEqual(everything(expected));
      lion.applyTernary(mine.θ.x, planes[0], planes[1], change);
      definition.applyTernary(expected.θ.x, planes[0], planes[1], change);
      expect(everything(mine), `ternary, n = ${n}`).toEqual(everything(expected));
      for (const ranks of [1, 3, 7, 8, 15]) {
        const used = planes.slice(0, ranks.toString(2).length);
        lion.applyTally(mine.θ.x, used, ranks, change);
        definition.applyTally(expected.θ.x, used, ranks, change);
        expect(everything(mine), `tally of ${ranks}, n = ${n}`).toEqual(everything(expected));
      }
    });
  });

  it.each([1, 2, 3, 5, 7, 100, 1000, 1023, 1024])(
    "applies a unanimous tally of %i with the bits of applySigns",
    (ranks) => {
      const n = 130;
      const wire = anyBytes(17, ranks);
      const planes = [...ranks.toString(2)].reverse().map((digit) => (digit === "1" ? wire : new Uint8Array(17)));
      const byTally = anyFloats(n, 1);
      const bySigns = byTally.slice();
      lion.applyTally(byTally, planes, ranks, change);
      lion.applySigns(bySigns, wire, change);
      expect(bits(byTally)).toEqual(bits(bySigns));
    },
  );

  it("returns the index of the first NaN or infinity, also when there are others", () => {
    for (const n of [1, 8, 33, 64, 200, 5003, 8269]) {
      for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
        for (const at of [0, Math.floor(n * 0.3), Math.floor(n * 0.7), n - 1]) {
          const given = () => {
            const [θ, m, g] = [anyFloats(n, 1), anyFloats(n, 2), anyFloats(n, 3)] as const;
            (at % 2 ? m : g)[at] = bad;
            for (let later = at; later < n; later += 64) g[later] = Number.NaN;
            return [θ, m, g] as const;
          };
          const [θ, m, g] = given();
          expect(lion.step(θ, m, g, { ...rates, zero: "hold" }), `step, n = ${n}`).toBe(at);
          const [, momentum, gradient] = given();
          const wire = new Uint8Array(Math.ceil(n / 8));
          expect(lion.vote(wire, momentum, gradient, { ...betas, zero: "plus" }), `vote, n = ${n}`).toBe(at);
        }
      }
    }
  });

  it("refuses wrong lengths, types and options, and changes nothing", () => {
    const θ = anyFloats(16, 1);
    const m = anyFloats(16, 2);
    const g = anyFloats(16, 3);
    const before = [bits(θ), bits(m)];
    const wire = new Uint8Array(2);
    expect(() => lion.vote(new Uint8Array(3), m, g, { ...betas, zero: "plus" })).toThrow("wire: expected 2 bytes");
    expect(() => lion.vote(wire, m, g.subarray(1), { ...betas, zero: "plus" })).toThrow("g: expected 16 floats");
    expect(() => lion.vote(wire, m, g, { ...betas, zero: "hold" as "plus" })).toThrow("zero");
    expect(() => lion.vote(wire, m, g, { beta1: 0.9, zero: "plus" } as never)).toThrow("beta2");
    expect(() => lion.step(θ, m, new Float64Array(16), { ...rates, zero: "plus" })).toThrow("g: expected f32, got f64");
    for (const lr of [Number.NaN, 1e39])
      expect(() => lion.step(θ, m, g, { ...rates, lr, zero: "plus" })).toThrow("lr: expected a number that is finite");
    expect(() => lion.applySigns(θ, new Uint8Array(1), change)).toThrow("wire: expected 2 bytes");
    expect(() => lion.applySigns({ pointer: 64n, length: 16, dtype: "f32", device: "cuda:0" }, wire, change)).toThrow(
      "another device",
    );
    expect(() => lion.applyTernary(θ, wire, new Uint8Array(1), change)).toThrow("nonzero: expected 2 bytes");
    expect(() => lion.applyTally(θ, [wire], 2, change)).toThrow("planes: expected 2 planes");
    expect(() => lion.applyTally(θ, [wire, new Uint8Array(1)], 2, change)).toThrow("planes[1]: expected 2 bytes");
    expect(() => lion.applyTally(θ, [], 0, change)).toThrow("1 to 1024 ranks");
    expect(() => lion.applyTally(θ, [wire], 1.5, change)).toThrow("1 to 1024 ranks");
    expect([bits(θ), bits(m)]).toEqual(before);
  });
});

// Kernels have no fp64; their bits are those of the definition, which has.
describe("the definition of Lion in fp64", () => {
  function* visited({ θ: start, gradients }: Run) {
    const [θ, m] = [new Float64Array(start), new Float64Array(start.length)];
    for (const g of gradients) {
      definition.inDoubles(() => definition.lionStep(θ, m, new Float64Array(g), { ...rates, zero: "hold" }));
      yield { θ: θ.slice(), m: m.slice() };
    }
  }

  it("takes the three golden steps, to the last of their digits", () => {
    for (const [t, { θ, m }] of [...visited({ θ: golden.θ0, gradients: golden.gradients })].entries()) {
      if (t === 2) expect(furthest(m, golden.m3)).toBeLessThanOrEqual(1e-15);
      expect(furthest(θ, golden.θ[t]!)).toBeLessThanOrEqual(5.1e-9);
    }
  });

  it.skipIf(!python).each(["the golden steps", "200 steps"] as const)(
    `is lion-pytorch to 1e-15, %s${needsPython}`,
    (name) => {
      const expected = inTorch()[name];
      for (const [t, { θ }] of [...visited(runs[name])].entries())
        expect(furthest(θ, expected[t]!), `step ${t}`).toBeLessThanOrEqual(1e-15);
    },
  );
});

describe("lionVote and lionStep", () => {
  it("throw NotFiniteError with the index of the element", () => {
    const g = new Float32Array([1, 2, Number.NaN, Number.NaN]);
    const vote = () => lionVote(new Uint8Array(1), new Float32Array(4), g, { ...betas, zero: "plus" });
    expect(vote).toThrow(NotFiniteError);
    expect(vote).toThrow("lionVote: g[2] is NaN");
    const m = new Float32Array([0, Number.POSITIVE_INFINITY]);
    expect(() => lionStep(new Float32Array(2), m, new Float32Array(2), { ...rates, zero: "hold" })).toThrow(
      "lionStep: the state or g[1]",
    );
  });
});
