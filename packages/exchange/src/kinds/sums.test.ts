import { type Codec, dctTopK, int8, l1, topK } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { type Exchange, openExchange, ownedElements, PackedBits, StepRefusedError } from "../index.ts";
import { meanErrorCompensated, signOfLevels, sparse, sum, sumOfFields, sumOfLevels } from "../testing/alone.ts";
import { onRanks } from "../testing/on-ranks.ts";

type Sums = Pick<Exchange, "sum" | "sumOfFields" | "sumOfLevels" | "signOfLevels" | "meanErrorCompensated" | "sparse">;

const lengths = [100, 0, 7, 640];
const levels = l1({ bits: 4, unscaled: true });

const vector = (rank: number, n: number) => Float32Array.from({ length: n }, (_, i) => Math.sin(3 * i + rank + n));

function errorsOf(group: Group, n: number) {
  return {
    workerError: vector(group.rank + 9, n),
    serverError: vector(group.rank + 17, ownedElements(n, group.size, group.rank)),
  };
}

const into = (n: number) => new Float32Array(n).fill(1);
const codecs = { all: int8(), few: [topK({ k: 1 }), dctTopK({ block: 16, k: 2 })] as readonly Codec[] };

/** The results of all sums for every length. */
async function requestAll(group: Group, sums: Sums): Promise<unknown[]> {
  const requested = lengths.flatMap((n) => {
    const x = () => vector(group.rank, n);
    const errors = errorsOf(group, n);
    const outs = [into(n), into(n), into(n), into(n), into(n)] as const;
    const few = codecs.few[n % 2]!;
    return [
      sums.meanErrorCompensated(x(), { into: outs[0], ...errors }).then(() => [outs[0], errors]),
      sums.sum(x(), { into: outs[1], codec: codecs.all, scale: 1 / 2 }).then(() => outs[1]),
      sums.sumOfFields(x(), { into: outs[4], codec: codecs.all }).then(() => outs[4]),
      sums.sumOfLevels(x(), { into: outs[2], codec: levels }).then(() => outs[2]),
      sums.signOfLevels(x(), { codec: levels }).then(({ plus, nonzero }) => [[...plus.wire], [...nonzero.wire]]),
      n === 0 ? undefined : sums.sparse(x(), { into: outs[3], codec: few }).then(() => outs[3]),
    ];
  });
  return Promise.all(requested);
}

/** Each sum by itself, as a function on the group. */
const alone = (group: Group): Sums => {
  let before: Promise<unknown> = Promise.resolve();
  const next = <T>(run: () => Promise<T>): Promise<T> => {
    const result = before.then(run);
    before = result;
    return result;
  };
  return {
    sum: (x, options) => next(() => sum(group, x, options)),
    sumOfFields: (x, options) => next(() => sumOfFields(group, x, options)),
    sumOfLevels: (x, options) => next(() => sumOfLevels(group, x, options)),
    signOfLevels: (x, options) => next(() => signOfLevels(group, x, options)),
    meanErrorCompensated: (x, options) => next(() => meanErrorCompensated(group, x, options)),
    sparse: (x, options) => next(() => sparse(group, x, options)),
  };
};

describe("sums of a step", () => {
  it.each([1, 2, 3, 5])("travel together with the results that each has alone, on %i ranks", async (ranks) => {
    const apart = await onRanks(ranks, async (group) => {
      const results = await requestAll(group, alone(group));
      return { results, bytes: group.sent().bytes };
    });
    const together = await onRanks(ranks, async (group) => {
      const results = await requestAll(group, openExchange(group));
      const { bytes, messages } = group.sent();
      // By owners: 2 (P − 1). Sparse: P − 1. Fields: one agreement for all four vectors, and then by owners: 3 (P − 1).
      expect(messages).toBe(6 * (ranks - 1));
      return { results, bytes: bytes + 3 * 4 * (ranks - 1) }; // agreements that are not needed, without their scales
    });
    expect(together).toEqual(apart);
  });

  it("are carried together with votes and means, in the same order on every rank", async () => {
    const results = await onRanks(4, async (group) => {
      const exchange = openExchange(group);
      const step = async (k: number) => {
        const x = new Float32Array(3).fill(group.rank + k);
        const out = into(64);
        const u = new PackedBits(64);
        u.wire.fill(group.rank < 3 ? 0xff : 0);
        const [, voted] = await Promise.all([
          exchange.mean(x),
          exchange.majority(u, { tie: "plus" }),
          exchange.sumOfLevels(new Float32Array(64).fill(-1), { into: out, codec: levels }),
        ]);
        await exchange.sparse(x, { into: x, codec: topK({ k: 3 }) });
        return [x[0], voted.wire[0], out[63]];
      };
      return Promise.all([0, 1, 2].map(step));
    });
    // The mean magnitude is 1, so −1 is level −3.5 of 7, rounded to the even −4, on each of four ranks.
    for (const result of results) expect(result).toEqual([0, 1, 2].map((k) => [3 + 2 * k, 0xff, 1 - 16]));
  });

  it("stop on every rank if one refuses, or has a NaN in any of them", async () => {
    for (const ranks of [1, 2, 3])
      for (const kind of ["sum", "sparse"] as const)
        for (const what of ["loss", "gradient"] as const) {
          const outcomes = await onRanks(ranks, async (group) => {
            const exchange = openExchange(group);
            const x = vector(group.rank, 64);
            const bad = group.rank === ranks - 1;
            if (bad && what === "loss") exchange.refuse("the loss is not finite");
            if (bad && what === "gradient") x[5] = Number.NaN;
            const codec = kind === "sum" ? codecs.all : topK({ k: 2 });
            const outs = [into(64), into(64)] as const;
            const both = await Promise.allSettled([
              exchange[kind](vector(0, 64), { into: outs[0], codec }),
              exchange[kind](x, { into: outs[1], codec }),
            ]);
            return { errors: both.map((one) => (one.status === "rejected" ? one.reason : undefined)), outs };
          });
          for (const { errors, outs } of outcomes) {
            for (const error of errors) {
              expect(error).toBeInstanceOf(StepRefusedError);
              expect((error as Error).message).toContain(
                `rank ${ranks - 1} refuses the step: the ${what} is not finite`,
              );
            }
            for (const out of outs) expect(out).toEqual(into(64));
          }
        }
  });

  it("are rejected alone, before anything is sent, if their lengths do not fit", async () => {
    const messages = await onRanks(2, async (group) => {
      const exchange = openExchange(group);
      const [wrong, right, tooMany] = await Promise.allSettled([
        exchange.sum(new Float32Array(10), { into: into(9), codec: codecs.all }),
        exchange.sum(new Float32Array(10).fill(1), { into: into(10), codec: codecs.all }),
        exchange.sparse(new Float32Array(3), { into: into(3), codec: topK({ k: 4 }) }),
      ]);
      expect(right.status).toBe("fulfilled");
      return [wrong, tooMany].map((one) => (one.status === "rejected" ? String(one.reason.message) : ""));
    });
    for (const [wrong, tooMany] of messages) {
      expect(wrong).toBe("sum: into has 9 floats, and must have 10, as x has.");
      expect(tooMany).toContain("k is 4, and of 3 floats at most 3 can be kept");
    }
  });
});
