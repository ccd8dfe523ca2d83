import { loopback } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { lion, lionCub } from "../index.ts";
import { meshOf } from "../mesh.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { type Oracle, optimizerContract, votingOracle } from "../testing/optimizer-contract.ts";
import { noise } from "../testing/train-matrices.ts";
import { trajectory } from "../testing/trajectory.ts";
import type { Vector } from "./algorithm.ts";

optimizerContract("lion-cub", {
  create: () => lionCub({ beta1: 0.5, beta2: 0.75, weightDecay: 0.25 }),
  // Algorithm 1 of the paper, with one bit and alternating ties (§3.2)
  oracle: votingOracle((sum, _, alternate) => Math.sign(sum) || alternate),
});

optimizerContract("lion-cub with a mask of what has had a gradient", {
  create: () => lionCub({ beta1: 0.5, beta2: 0.75, weightDecay: 0.25, maskEvery: 1 }),
  oracle: votingOracle((sum, _, alternate) => Math.sign(sum) || alternate, { masked: true }),
});

// The 2-bit vote that Figure 3 compares one bit with: what never had a gradient stays where it is.
optimizerContract("lion-cub with zeros held", {
  create: () => lionCub({ beta1: 0.5, beta2: 0.75, weightDecay: 0.25, zero: "hold" }),
  oracle: votingOracle((sum) => Math.sign(sum), { zero: "hold" }),
});

/** Q₁ of §4.2 for each parameter tensor of the contract, and Σ q of all ranks. */
function levelsOracle(levels: (ranks: number) => number) {
  const halfEven = (x: number) => (Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));
  return (n: number, ranks: number): Oracle => {
    const s = levels(ranks);
    const m = Array.from({ length: ranks }, () => new Array<number>(n).fill(0));
    return (θ, g, { lr }) => {
      const sum = new Array<number>(n).fill(0);
      for (let r = 0; r < ranks; r++) {
        const c = m[r]!.map((mi, i) => 0.5 * mi + 0.5 * g[r]![i]!);
        for (const [from, to] of [
          [0, 21],
          [21, 85],
          [85, n],
        ] as const) {
          const mean = Math.fround(c.slice(from, to).reduce((total, ci) => total + Math.abs(ci), 0) / (to - from));
          for (let i = from; i < to; i++) sum[i]! += Math.max(-s, Math.min(s, halfEven((c[i]! * s) / (2 * mean))));
        }
        m[r] = m[r]!.map((mi, i) => 0.75 * mi + 0.25 * g[r]![i]!);
      }
      for (let i = 0; i < n; i++) θ[i] = θ[i]! - lr * (Math.sign(sum[i]!) + 0.25 * θ[i]!);
    };
  };
}

for (const bits of [2, 5, 8])
  optimizerContract(`lion-cub with ${bits} bits`, {
    create: () => lionCub({ beta1: 0.5, beta2: 0.75, weightDecay: 0.25, bits }),
    oracle: levelsOracle(() => 2 ** (bits - 1) - 1),
  });

optimizerContract("lion-cub with the levels of the authors' code, s = ⌊127/P⌋", {
  create: () => lionCub({ beta1: 0.5, beta2: 0.75, weightDecay: 0.25, sumBits: 8 }),
  oracle: levelsOracle((ranks) => Math.floor(127 / ranks)),
});

optimizerContract("lion-cub with 5 bits, added by one all-reduce", {
  create: () => lionCub({ beta1: 0.5, beta2: 0.75, weightDecay: 0.25, bits: 5, sum: "direct" }),
  oracle: levelsOracle(() => 15),
});

// With so few ranks auto takes levels.
optimizerContract("lion-cub with bits: auto", {
  create: () => lionCub({ beta1: 0.5, beta2: 0.75, weightDecay: 0.25, bits: "auto" }),
  oracle: levelsOracle((ranks) => Math.floor(127 / ranks)),
});

for (const quantizer of ["linf", "linf-without-zero", "linf-logarithmic"] as const)
  optimizerContract(`lion-cub with levels of ${quantizer}`, { create: () => lionCub({ bits: 4, quantizer }) });

describe("lion-cub", () => {
  it("matches the signs of Lion's update on heavy tails best with l1, as Figure 5, and loses most of them to zeros with linf", async () => {
    const [ranks, n] = [8, 4096];
    // Signed numbers whose logarithms are normal, with a deviation of 2: the largest are far from the others.
    const draws = noise(2 * ranks * n, 3);
    const g = Array.from({ length: ranks }, (_, r) =>
      Array.from({ length: n }, (_, i) => {
        const [a, b] = [(draws[2 * (r * n + i)]! + 1) / 2, draws[2 * (r * n + i) + 1]!];
        return Math.sign(b) * Math.exp(2 * Math.sqrt(-2 * Math.log(a + 2 ** -30)) * Math.cos(Math.PI * b));
      }),
    );
    const signs = Array.from({ length: n }, (_, i) => Math.sign(g.reduce((sum, own) => sum + own[i]!, 0)));
    const rates = async (options: Parameters<typeof lionCub>[0]) => {
      const [first] = await onRanks(ranks, (group) =>
        trajectory(group, lionCub(options), [g[group.rank]!], { start: new Array(n).fill(0), lr: 1 }),
      );
      const v = first![0]!.map((value) => -value);
      const rate = (of: (sign: number, i: number) => boolean) => v.filter((value, i) => of(value, i)).length / n;
      return { match: rate((value, i) => value === signs[i]), flip: rate((value, i) => value === -signs[i]!) };
    };
    const l1 = await rates({ bits: 5 });
    const votes = await rates({});
    const linf = await rates({ bits: 5, quantizer: "linf" });
    const withoutZero = await rates({ bits: 5, quantizer: "linf-without-zero" });
    const logarithmic = await rates({ bits: 5, quantizer: "linf-logarithmic" });
    expect(l1.match).toBeGreaterThan(0.85);
    for (const other of [votes, linf, withoutZero]) expect(other.match).toBeLessThan(l1.match - 0.1);
    expect(linf.match).toBeLessThan(0.5);
    expect(linf.flip).toBeLessThan(withoutZero.flip / 2);
    expect(withoutZero.match).toBeGreaterThan(linf.match + 0.1);
    for (const other of [votes, withoutZero]) expect(other.flip).toBeGreaterThan(l1.flip);
    expect(logarithmic.match).toBeGreaterThan(linf.match);
  });

  it("moves an element when the next count has seen a gradient of any rank, and never one without", async () => {
    // Elements: always a gradient; never; from step 1 on, on one rank only.
    const rows = (rank: number) => Array.from({ length: 6 }, (_, t) => [1, 0, rank === 1 && t > 0 ? 1 : 0]);
    const all = await onRanks(3, (group) =>
      trajectory(group, lionCub({ maskEvery: 3, zero: "plus", tie: "plus" }), rows(group.rank), {
        start: [0, 0, 0],
        lr: 1,
      }),
    );
    for (const steps of all) {
      expect(steps.map(([always]) => always)).toEqual([-1, -2, -3, -4, -5, -6]);
      expect(steps.map(([, never]) => never)).toEqual([0, 0, 0, 0, 0, 0]);
      expect(steps.map(([, , late]) => late)).toEqual([0, 0, 0, -1, -2, -3]); // counted at steps 0 and 3
    }
    expect(() => lionCub({ bits: 5, maskEvery: 3 })).toThrow(
      "lion-cub.maskEvery: with bits: 5 a level can be 0, which does not move; leave maskEvery out, or take one bit",
    );
  });

  it.each([
    [63, "signOfLevels"],
    [64, "vote"],
    [200, "vote"], // more than 8 bits can add
  ])("chooses by itself levels for %i ranks or a vote", (ranks, kind) => {
    const vector = { n: 64, offset: 0, segments: [], lengths: [64], rank: 0, ranks } as unknown as Vector;
    for (const options of [{}, { quantizer: "l1" }, { sum: "owners" }] as const)
      expect(lionCub({ bits: "auto", ...options }).messages(vector, 0, undefined as never)).toMatchObject([{ kind }]);
  });

  it("refuses options of levels with one bit, and those that do not go together", () => {
    for (const option of [{ quantizer: "linf" }, { sum: "direct" }] as const)
      expect(() => lionCub(option)).toThrow(
        /lion-cub\.(quantizer|sum): one bit is a vote, which has no levels, and \1 is (linf|direct); take more bits, or leave \1 out/,
      );
    for (const options of [{}, { bits: 4 }] as const)
      expect(() => lionCub({ ...options, seed: 3 })).toThrow(
        "lion-cub.seed: only linf draws at random, and seed is 3; leave it out, or take quantizer: linf",
      );
    expect(() => lionCub({ bits: "auto", quantizer: "linf" })).toThrow(
      "lion-cub.quantizer: bits: auto chooses the levels of l1, and quantizer is linf; give bits as a number",
    );
    expect(() => lionCub({ bits: 4, quantizer: "linf-logarithmic", sum: "direct" })).toThrow(
      /lion-cub\.sum: logarithmic levels/,
    );
  });

  it("with many bits follows the sum of the ranks' updates, which one bit does not", async () => {
    // Two ranks want a little one way, one wants much the other way; what stands beside sets the scale.
    const run = async (bits: number) => {
      const groups = loopback(3);
      const rows = [
        [1, 10],
        [1, 10],
        [-8, 10],
      ];
      const all = groups.map((group) =>
        trajectory(group, lionCub({ bits }), [rows[group.rank]!], { start: [0, 0], lr: 1 }),
      );
      const [first] = await Promise.all(all);
      await Promise.all(groups.map((group) => group.close()));
      return first![0];
    };
    expect(await run(1)).toEqual([-1, -1]);
    expect(await run(5)).toEqual([1, -1]);
  });

  it.each(["hold", "plus", "minus", "alternate"] as const)(
    "is Lion on one rank, bit for bit, when zeros are %s",
    async (zero) => {
      const [group] = loopback(1);
      const options = { beta1: 0.9, beta2: 0.99, weightDecay: 0.1, zero };
      const ours = await trajectory(group!, lionCub(options), 50);
      const plain = await trajectory(group!, lion(options), 50);
      expect(ours).toEqual(plain);
      await group!.close();
    },
  );

  it("refuses a sign for zeros and ties where levels have an exact 0", () => {
    for (const option of ["zero", "tie"] as const)
      expect(() => lionCub({ bits: 2, [option]: "alternate" })).toThrow(
        `lion-cub.${option}: with bits: 2 levels can be 0, which does not move, and ${option} is alternate; leave ${option} out, or take one bit`,
      );
  });

  it("refuses a tie, a mask and more bits where zeros are held", () => {
    expect(() => lionCub({ zero: "hold", tie: "plus" })).toThrow(
      "lion-cub.tie: with zero: hold a sum of 0 does not move, and tie is plus; leave tie out, or take another zero",
    );
    expect(() => lionCub({ zero: "hold", maskEvery: 3 })).toThrow(
      "lion-cub.maskEvery: with zero: hold elements without a gradient do not move; leave maskEvery out, or take another zero",
    );
    for (const options of [{ bits: 2 }, { bits: "auto" }] as const)
      expect(() => lionCub({ ...options, zero: "hold" })).toThrow(
        /^lion-cub\.zero: .*; leave zero out, or take one bit$/,
      );
  });

  it("asks to leave sumBits out where one bit is meant, which bits already is", () => {
    for (const [option, value] of Object.entries({ zero: "hold", tie: "plus", maskEvery: 3 }))
      expect(() => lionCub({ sumBits: 8, [option]: value })).toThrow(
        new RegExp(`^lion-cub\\.${option}: with sumBits: 8 .*; leave ${option} out, or leave sumBits out$`),
      );
    expect(() => lionCub({ sumBits: 8, quantizer: "linf" })).toThrow(
      /^lion-cub\.quantizer: sumBits: 8 .*; leave sumBits out, and give bits as a number$/,
    );
  });

  it("refuses a parameter of one element with two bits, whose level is always 0", async () => {
    await onRanks(2, async (group) => {
      await expect(trajectory(group, lionCub({ bits: 2 }), [[1]], { start: [0] })).rejects.toThrow(
        "lion-cub.bits: with one level on each side of 0 the parameter weight of one element would never move: it is half a level, which is rounded to 0; take bits: 1, or 3 and more, or another algorithm for it (groups)",
      );
    });
  });

  it("names sumBits where it leaves one level, and how many bits leave more", async () => {
    await onRanks(3, async (group) => {
      await expect(trajectory(group, lionCub({ sumBits: 3 }), [[1]], { start: [0] })).rejects.toThrow(
        /^lion-cub\.sumBits: with one level .*; take sumBits: 4 or more, or leave it out, or another algorithm/,
      );
    });
  });

  it.each([{ bits: 1 }, { bits: 3 }, { bits: 8 }, { sumBits: 5 }, { zero: "hold" }] as const)(
    "moves a parameter of one element with %o",
    async (options) => {
      for (const [after] of await onRanks(2, (group) =>
        trajectory(group, lionCub(options), [[0.1]], { start: [0], lr: 1 }),
      ))
        expect(after).toEqual([-1]);
    },
  );

  it("refuses sumBits beside bits, and with so many ranks that no level is left", () => {
    expect(() => lionCub({ bits: 5, sumBits: 8 })).toThrow(
      "lion-cub.sumBits: it chooses the bits, and bits is 5; leave one of them out",
    );
    const among = (ranks: number, sumBits: number) => () => {
      const mesh = meshOf({ rank: 0, size: ranks });
      const vector = { n: 1, offset: 0, segments: [], lengths: [], rank: 0, ranks, owner: 0, mesh };
      lionCub({ sumBits }).init(undefined as never, vector);
    };
    expect(among(4, 3)).toThrow(
      "lion-cub.sumBits: 3 bits hold a sum from -3 to 3, less than one level of each of 4 ranks; take sumBits: 4 or more, or leave it out",
    );
    expect(among(128, 8)).toThrow(
      "lion-cub.sumBits: 8 bits hold a sum from -127 to 127, less than one level of each of 128 ranks; leave it out, since more than 8 bits are not possible",
    );
  });

  it("names the wrong option", () => {
    expect(() => lionCub({ beta1: 1.5 })).toThrow(/lion-cub\.beta1/);
    expect(() => lionCub({ bits: 9 })).toThrow(/lion-cub\.bits/);
    expect(() => lionCub({ zero: "holds" as never })).toThrow(/lion-cub\.zero.*did you mean hold/);
  });
});
