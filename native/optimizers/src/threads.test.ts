import { afterEach, describe, expect, it } from "vitest";
import {
  adamwStep,
  applySigns,
  applyTally,
  applyTernary,
  lionStep,
  lionVote,
  NotFiniteError,
  sumOfSquares,
  useTeam,
  useThreads,
} from "./index.ts";
import { anyBytes, anyFloats } from "./testing/inputs.ts";

const n = 3 * 2 ** 19 + 4321; // enough for five threads; the last part ends in the middle of a byte
const lion = { lr: 0.01, beta1: 0.9, beta2: 0.99, weightDecay: 0.1, zero: "plus", gradientScale: 0.5 } as const;

/** The bits of everything that the kernels write. */
function everything() {
  const [θ, m, g] = [anyFloats(n, 1), anyFloats(n, 2), anyFloats(n, 3)];
  const v = anyFloats(n, 4).map(Math.abs);
  const wire = new Uint8Array(Math.ceil(n / 8));
  const planes = [5, 6, 7].map((seed) => anyBytes(wire.length, seed));
  const change = { keep: 0.999, scale: -0.01 };
  lionVote(wire, m, g, lion);
  lionStep(θ, m, g, { ...lion, zero: "hold" });
  applySigns(θ, wire, change);
  applyTernary(θ, planes[0]!, planes[1]!, change);
  applyTally(θ, planes, 6, change);
  adamwStep(
    θ,
    m,
    v,
    g.map((x) => x / 1e3),
    { lr: 0.01, beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0, step: 3 },
  );
  return [Buffer.from(θ.buffer), Buffer.from(m.buffer), Buffer.from(v.buffer), Buffer.from(wire), sumOfSquares(θ)];
}

describe("several threads", () => {
  afterEach(() => useThreads(1));

  it("give the bits of one thread", () => {
    useThreads(1);
    const expected = everything();
    for (const threads of [2, 3, 5]) {
      useThreads(threads);
      expect(
        everything().every((what, i) =>
          Buffer.isBuffer(what) ? what.equals(expected[i] as Buffer) : what === expected[i],
        ),
      ).toBe(true);
    }
  });

  it("report the first bad element, in whichever thread's part it is", () => {
    useThreads(4);
    for (const first of [0, 70_001, n >> 1, n - 1]) {
      const g = anyFloats(n, 3);
      g[n - 1] = Number.NaN;
      g[first] = Number.POSITIVE_INFINITY;
      const vote = () => lionVote(new Uint8Array(Math.ceil(n / 8)), new Float32Array(n), g, lion);
      expect(vote).toThrow(NotFiniteError);
      expect(vote).toThrow(`[${first}]`);
    }
  });

  it("are lent by the address of a function alone", () => {
    for (const wrong of [0n, -1n, 2n ** 64n]) expect(() => useTeam(wrong)).toThrow("team: expected the address");
  });

  it("are refused unless their number is an integer of 1 or more", () => {
    for (const threads of [0, -1, 1.5, Number.NaN]) expect(() => useThreads(threads)).toThrow("threads");
  });
});
