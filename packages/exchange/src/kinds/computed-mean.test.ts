import { bf16, type Codec, int8 } from "@terse/codecs";
import { describe, expect, it } from "vitest";
import {
  bytesOfRound,
  type ChosenSchemes,
  type DenseType,
  dense,
  type Message,
  memoryOfRound,
  openExchange,
  StepRefusedError,
  standardSchemes,
} from "../index.ts";
import { scratchOf } from "../scratch.ts";
import { computedMean } from "../testing/alone.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { ownedVectors, takesSlices } from "./computed-mean.ts";

/** Whether messages of one kind go by slices. */
function bySlices(messages: readonly Message[], ranks: number, schemes: ChosenSchemes = standardSchemes): boolean {
  const [{ vectors, only }] = ownedVectors(messages, ranks, schemes) as [ReturnType<typeof ownedVectors>[0]];
  return takesSlices(vectors, ranks, only);
}

const vector = (rank: number, n: number) =>
  Float32Array.from({ length: n }, (_, i) => 60 * (((i * 7 + rank * 11) % 9) - 4));

function meanOf(ranks: number, n: number): number[] {
  const vectors = Array.from({ length: ranks }, (_, r) => vector(r, n));
  return Array.from({ length: n }, (_, i) => vectors.reduce((sum, x) => sum + x[i]!, 0) / ranks);
}

describe("a computed mean", () => {
  it.each([1, 2, 3, 4, 5])("is computed once, by its owner, from the mean of %i ranks", async (ranks) => {
    for (let owner = 0; owner < ranks; owner++) {
      const seen: [rank: number, mean: number[]][] = [];
      const results = await onRanks(ranks, async (group) => {
        const into = new Float32Array(3);
        await computedMean(group, vector(group.rank, 20), {
          owner,
          into,
          compute(mean, result) {
            seen.push([group.rank, [...mean]]);
            result.set(mean.subarray(4, 7));
          },
        });
        return [...into];
      });
      expect(seen).toEqual([[owner, meanOf(ranks, 20)]]);
      for (const result of results) expect(result).toEqual(meanOf(ranks, 20).slice(4, 7));
    }
  });

  it("replaces its vector unless it has a place of its own, and is the same on every rank whatever the owner computes", async () => {
    const results = await onRanks(3, async (group) => {
      const x = vector(group.rank, 100);
      await computedMean(group, x, {
        owner: 1,
        compute: (mean, result) => {
          for (const [i, value] of mean.entries()) result[i] = value * Math.random();
        },
      });
      return [...x];
    });
    expect(new Set(results[0]).size).toBeGreaterThan(50);
    for (const result of results) expect(result).toEqual(results[0]);
  });

  it("travels with the others of its round, of other lengths and owners, as one message each way", async () => {
    const lengths = [5, 0, 64, 7];
    const sent = await onRanks(4, async (group) => {
      const exchange = openExchange(group);
      const vectors = lengths.map((n) => vector(group.rank, n));
      const requests = vectors.map((x, owner) =>
        exchange.computedMean(x, { owner, compute: (mean, result) => result.set(mean) }),
      );
      await Promise.all(requests);
      for (const [i, x] of vectors.entries()) expect([...x]).toEqual(meanOf(4, lengths[i]!));
      return group.sent().messages;
    });
    expect(sent).toEqual([6, 6, 6, 6]); // 2 (P − 1)
  });

  it("names an owner that is no rank, before anything is sent", async () => {
    await onRanks(2, async (group) => {
      for (const owner of [-1, 2, 0.5])
        await expect(computedMean(group, new Float32Array(2), { owner, compute() {} })).rejects.toThrow(
          `computedMean: owner is ${owner}; choose one of the ranks 0 to 1`,
        );
      expect(group.sent().messages).toBe(0);
    });
  });
});

describe.each([
  ["owners", 8],
  ["slices", 100_000],
])("a computed mean that is carried by %s", (way, n) => {
  it("is", () => {
    expect(bySlices([{ kind: "computedMean", owner: 1, n }], 3)).toBe(way === "slices");
  });

  it("is refused on every rank after one rank's NaN, and after a result that is not finite", async () => {
    for (const [poisoned, of] of [
      ["x", 2],
      ["result", 1],
    ] as const) {
      const outcomes = await onRanks(3, async (group) => {
        const x = vector(group.rank, n);
        if (poisoned === "x" && group.rank === 2) x[5] = Number.NaN;
        const into = new Float32Array(n).fill(7);
        const compute = (_: Float32Array, result: Float32Array) => result.fill(poisoned === "x" ? 1 : Number.NaN);
        const error = await openExchange(group)
          .computedMean(x, { owner: 1, into, compute })
          .catch((error: unknown) => error);
        return { error, into };
      });
      for (const { error, into } of outcomes) {
        expect(error).toBeInstanceOf(StepRefusedError);
        expect(String(error)).toContain(`rank ${of} refuses the step: the gradient is not finite`);
        expect(into.every((value) => value === 7)).toBe(true);
      }
    }
  });

  it("is refused on every rank when one of them refuses the step", async () => {
    const outcomes = await onRanks(3, async (group) => {
      const exchange = openExchange(group);
      if (group.rank === 0) exchange.refuse("the loss is not finite");
      const compute = () => expect.unreachable("the owner computes nothing in a refused step");
      return exchange.computedMean(vector(group.rank, n), { owner: 1, compute }).catch((error: unknown) => error);
    });
    for (const error of outcomes) expect(String(error)).toContain("rank 0 refuses the step: the loss is not finite");
  });

  it("ends the group on every rank when the owner cannot compute it, with the reason", async () => {
    const outcomes = await onRanks(3, async (group) => {
      const compute = () => {
        throw new Error("no memory left");
      };
      return computedMean(group, vector(group.rank, n), { owner: 1, compute }).catch((error: unknown) => error);
    });
    for (const [rank, error] of outcomes.entries())
      expect(String((error as Error).cause ?? error), `rank ${rank}`).toContain("no memory left");
  });
});

describe("computed means of a round", () => {
  const owned: readonly (readonly [owner: number, n: number, k: number])[] = [
    [2, 40_000, 40_000],
    [0, 7, 3],
    [2, 50_001, 20_000],
    [1, 0, 0],
    [0, 30_000, 60_001],
  ];
  const round = owned.map(([owner, n, result]): Message => ({ kind: "computedMean", owner, n, result }));
  const numbers = (rank: number, n: number) => Float32Array.from({ length: n }, (_, i) => Math.sin(3 * i + rank) / 3);

  it.each([4, 5, 8])("send and hold what the closed form says, by slices, on %i ranks", async (ranks) => {
    expect(bySlices(round, ranks)).toBe(true);
    await onRanks(ranks, async (group) => {
      const exchange = openExchange(group);
      const requests = owned.map(([owner, n, k]) => {
        const compute = (mean: Float32Array, result: Float32Array) =>
          result.set(Float32Array.from({ length: k }, (_, i) => 2 * mean[i % n]!));
        return exchange.computedMean(numbers(group.rank, n), { owner, compute, into: new Float32Array(k) });
      });
      await Promise.all(requests);
      const { bytes, messages } = group.sent();
      expect(bytes).toBe(bytesOfRound(round, ranks, group.rank, standardSchemes));
      expect(messages).toBe(4 * (ranks - 1));
      expect(scratchOf(group).peak).toBe(memoryOfRound(round, ranks, group.rank, standardSchemes));
      expect(scratchOf(group).live).toBe(0);
    });
  });

  it.each([3, 5, 8])("have the same bits by slices as by owners, on %i ranks", async (ranks) => {
    const n = 60_000;
    const doubled = (mean: Float32Array, result: Float32Array) => {
      for (const [i, value] of mean.entries()) result[i] = 2 * value;
    };
    /** As many vectors as ranks, owned by one rank or by all. */
    const doubledMeans = (ownerOf: (i: number) => number) =>
      onRanks(ranks, async (group) => {
        const exchange = openExchange(group);
        const vectors = Array.from({ length: ranks }, (_, i) => numbers(group.rank + 100 * i, n));
        await Promise.all(vectors.map((x, i) => exchange.computedMean(x, { owner: ownerOf(i), compute: doubled })));
        expect(group.sent().messages).toBe((ownerOf(1) === ownerOf(2) ? 4 : 2) * (ranks - 1));
        return Buffer.concat(vectors.map(({ buffer }) => new Uint8Array(buffer)));
      });
    const [[expected], ...others] = [await doubledMeans((i) => i), await doubledMeans(() => ranks - 1)] as const;
    for (const results of others) for (const result of results) expect(result.equals(expected!)).toBe(true);
  });
});

describe.each([
  ["owners", 8],
  ["slices", 100_000],
])("the mean at its owner, and what comes from the owner, carried by %s", (way, n) => {
  it("is", () => {
    for (const kind of ["meanAtOwner", "fromOwner"] as const)
      expect(bySlices([{ kind, owner: 1, n }], 3)).toBe(way === "slices");
  });

  it("leaves the mean on the owner alone, and then the owner's vector on every rank", async () => {
    for (const ranks of [1, 2, 3, 5]) {
      const owner = ranks - 1;
      await onRanks(ranks, async (group) => {
        const exchange = openExchange(group);
        const isOwner = group.rank === owner;
        const x = vector(group.rank, n);
        let seen: number[] | undefined;
        await exchange.meanAtOwner(x, { owner, arrived: () => (seen = [...x]) });
        expect([...x]).toEqual(isOwner ? meanOf(ranks, n) : [...vector(group.rank, n)]);
        expect(seen).toEqual(isOwner ? meanOf(ranks, n) : undefined);
        if (isOwner) for (const [i, value] of x.entries()) x[i] = value + 1;
        await exchange.fromOwner(x, { owner });
        expect([...x]).toEqual(meanOf(ranks, n).map((value) => value + 1));
      });
    }
  });

  it("sends and holds what the closed forms say", async () => {
    for (const ranks of [2, 3, 5])
      await onRanks(ranks, async (group) => {
        const exchange = openExchange(group);
        const vectors = [n, 7, 0].map((length) => vector(group.rank, length));
        const kinds = ["meanAtOwner", "fromOwner"] as const;
        for (const kind of kinds) {
          const round = vectors.map((x, i): Message => ({ kind, n: x.length, owner: i % ranks }));
          const [before, scratch] = [group.sent(), scratchOf(group)];
          scratch.peak = 0;
          await Promise.all(vectors.map((x, i) => exchange[kind](x, { owner: i % ranks })));
          const after = group.sent();
          expect(after.bytes - before.bytes).toBe(bytesOfRound(round, ranks, group.rank, standardSchemes));
          expect(after.messages - before.messages).toBe((bySlices(round, ranks) ? 2 : 1) * (ranks - 1));
          expect(scratch.peak).toBe(memoryOfRound(round, ranks, group.rank, standardSchemes));
          expect(scratch.live).toBe(0);
        }
      });
  });

  it("throws on the owner what happens when it arrives, also an error that would refuse a message", async () => {
    const outcomes = await onRanks(3, (group) => {
      const arrived = () => {
        throw new RangeError("more than expected");
      };
      return openExchange(group)
        .meanAtOwner(vector(group.rank, n), { owner: 1, arrived })
        .catch((error: unknown) => String(error));
    });
    expect(outcomes).toEqual([undefined, "RangeError: more than expected", undefined]);
  });

  it.each(["meanAtOwner", "fromOwner"] as const)(
    "is refused on every rank after a NaN, or when one of them refuses the step, %s",
    async (kind) => {
      for (const poisoned of [true, false]) {
        const outcomes = await onRanks(3, async (group) => {
          const exchange = openExchange(group);
          const x = vector(group.rank, n);
          const culprit = kind === "fromOwner" ? 1 : 2;
          if (group.rank === culprit && poisoned) x[n - 1] = Number.NaN;
          if (group.rank === culprit && !poisoned) exchange.refuse("the loss is not finite");
          const before = [...x];
          const error = await exchange[kind](x, { owner: 1 }).catch((error: unknown) => error);
          expect([...x]).toEqual(before);
          return String(error);
        });
        const what = poisoned ? "the gradient is not finite" : "the loss is not finite";
        for (const error of outcomes)
          expect(error).toContain(`rank ${kind === "fromOwner" ? 1 : 2} refuses the step: ${what}`);
      }
    },
  );
});

describe.each(["bf16", "int8"] as const)("what goes to owners and comes from them in %s", (type: DenseType) => {
  const codec = (type === "bf16" ? bf16 : int8({ block: 512 })) as Codec;
  const schemes = { ...standardSchemes, means: dense(type), computed: type } as ChosenSchemes;
  const numbers = (rank: number, n: number) => Float32Array.from({ length: n }, (_, i) => Math.sin(3 * i + rank) / 3);
  /** As the codec writes and reads it. */
  const rounded = (x: Float32Array): Float32Array => {
    const wire = new Uint8Array(codec.wireBytes(x.length));
    codec.encode(wire, x);
    const read = new Float32Array(x.length);
    codec.decodeAdd(read, wire);
    return read;
  };
  const meanOf = (ranks: number, n: number) => {
    const mean = new Float32Array(n);
    for (let r = 0; r < ranks; r++)
      for (const [i, value] of rounded(numbers(r, n)).entries()) mean[i]! += Math.fround(value / ranks);
    return mean;
  };
  const negated = (mean: Float32Array, result: Float32Array) => {
    for (const [i, value] of mean.entries()) result[i] = 0 - value; // no −0
  };
  const lengths = [0, 1, 511, 5_001];

  it("is rounded once on the way up and once on the way down, and the owner has the rounded values as well", async () => {
    for (const ranks of [2, 4]) {
      for (const n of lengths) {
        const computed = await onRanks(ranks, async (group) => {
          const x = numbers(group.rank, n);
          await openExchange(group, { schemes }).computedMean(x, { owner: 1, compute: negated });
          return x;
        });
        const expected = rounded(meanOf(ranks, n).map((value) => 0 - value));
        for (const x of computed) expect(x).toEqual(expected);

        const halves = await onRanks(ranks, async (group) => {
          const exchange = openExchange(group, { schemes });
          const x = numbers(group.rank, n);
          await exchange.meanAtOwner(x, { owner: 0 });
          const atOwner = x.slice();
          await exchange.fromOwner(x, { owner: 0 });
          return { atOwner, x };
        });
        expect(halves[0]!.atOwner).toEqual(meanOf(ranks, n));
        for (const { x } of halves) expect(x).toEqual(rounded(meanOf(ranks, n)));
      }
    }
  });

  it("is not rounded on a single rank", async () => {
    await onRanks(1, async (group) => {
      const x = numbers(0, 1000);
      await openExchange(group, { schemes }).computedMean(x, { owner: 0, compute: negated });
      expect(x).toEqual(numbers(0, 1000).map((value) => 0 - value));
    });
  });

  it.each([2, 3, 5])("sends and holds what the closed forms say, on %i ranks", async (ranks) => {
    for (const means of ["f32", type] as const) {
      const chosen = { ...schemes, means: dense(means) };
      await onRanks(ranks, async (group) => {
        const exchange = openExchange(group, { schemes: chosen });
        for (const kind of ["computedMean", "meanAtOwner", "fromOwner"] as const)
          for (const n of [...lengths, 100_001]) {
            const round: Message[] = [{ kind, n, owner: 1 }];
            const [before, scratch] = [group.sent(), scratchOf(group)];
            scratch.peak = 0;
            await exchange[kind](numbers(group.rank, n), { owner: 1, compute: negated });
            const after = group.sent();
            expect(after.bytes - before.bytes).toBe(bytesOfRound(round, ranks, group.rank, chosen));
            const hops = (bySlices(round, ranks, chosen) ? 2 : 1) * (kind === "computedMean" ? 2 : 1);
            expect(after.messages - before.messages).toBe(hops * (ranks - 1));
            expect(scratch.peak).toBe(memoryOfRound(round, ranks, group.rank, chosen));
            expect(scratch.live).toBe(0);
          }
      });
    }
  });

  it("comes from its owner by slices with the same bits, in the bytes of its type", async () => {
    const n = 300_000;
    const round: Message[] = [{ kind: "fromOwner", n, owner: 2 }];
    expect(bySlices(round, 5, schemes)).toBe(true);
    await onRanks(5, async (group) => {
      const x = numbers(group.rank, n);
      await openExchange(group, { schemes }).fromOwner(x, { owner: 2 });
      expect(x).toEqual(rounded(numbers(2, n)));
      // its slice, to the four others
      if (group.rank !== 2) expect(Math.abs(group.sent().bytes - (4 / 5) * codec.wireBytes(n))).toBeLessThan(16);
    });
  });

  it.each(["computedMean", "meanAtOwner", "fromOwner"] as const)(
    "is refused on every rank after a NaN, and nothing changes, %s",
    async (kind) => {
      const errors = await onRanks(3, async (group) => {
        const x = numbers(group.rank, 700);
        if (group.rank === 1) x[600] = Number.NaN;
        const before = x.slice();
        const error = await openExchange(group, { schemes })[kind](x, { owner: 1, compute: negated }).catch(String);
        expect(x).toEqual(before);
        expect(scratchOf(group).live).toBe(0);
        return error;
      });
      for (const error of errors) expect(error).toContain("rank 1 refuses the step: the gradient is not finite");
    },
  );
});

it("the halves of a computed mean name an owner that is no rank, before anything is sent", async () => {
  await onRanks(2, async (group) => {
    for (const kind of ["meanAtOwner", "fromOwner"] as const)
      await expect(openExchange(group)[kind](new Float32Array(2), { owner: 2 })).rejects.toThrow(
        `${kind}: owner is 2; choose one of the ranks 0 to 1`,
      );
    expect(group.sent().messages).toBe(0);
  });
});
