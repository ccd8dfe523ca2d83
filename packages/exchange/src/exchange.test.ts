import { describe, expect, it } from "vitest";
import { dense, meanCost, openExchange, PackedBits, StepRefusedError } from "./index.ts";
import { onRanks } from "./testing/on-ranks.ts";

function bits(n: number, value: number): PackedBits {
  const u = new PackedBits(n);
  u.wire.fill(0);
  for (let i = 0; i < n; i++) if ((value >> (i % 8)) & 1) u.wire[i >> 3]! |= 1 << (i & 7);
  return u;
}

it("makes no PackedBits of a length that is not a whole number", () => {
  for (const length of [-1, 1.5, Number.NaN])
    expect(() => new PackedBits(length)).toThrow(`PackedBits: length must be a non-negative integer, and is ${length}`);
});

describe("the exchange of a step", () => {
  it("sends votes of one round as one message", async () => {
    const alone = await onRanks(3, async (group) => {
      await openExchange(group).majority(bits(64 * 7, 0b1011), { tie: "plus" });
      return group.sent().messages;
    });
    const together = await onRanks(3, async (group) => {
      const exchange = openExchange(group);
      await Promise.all([1, 2, 4].map((words) => exchange.majority(bits(64 * words, 0b1011), { tie: "plus" })));
      return group.sent().messages;
    });
    expect(together).toEqual(alone);
  });

  it("gives every caller its own piece of the joint message", async () => {
    const lengths = [5, 64, 70, 1, 300];
    const results = await onRanks(3, async (group) => {
      const exchange = openExchange(group);
      const votes = lengths.map((n, i) =>
        exchange.majority(bits(n, (37 * (i + 1)) >> (group.rank % 2)), { tie: "minus" }),
      );
      return (await Promise.all(votes)).map((v) => [...v.wire]);
    });
    // Ranks 0 and 2 agree, so theirs is the majority.
    const expected = lengths.map((n, i) => [...bits(n, 37 * (i + 1)).wire]);
    for (const result of results) expect(result).toEqual(expected);
  });

  it("averages the vectors of a round in one message, in place if they are neighbours in memory", async () => {
    const messages = await onRanks(2, async (group) => {
      const flat = Float32Array.from({ length: 30 }, (_, i) => i * (group.rank + 1));
      const exchange = openExchange(group);
      await Promise.all([exchange.mean(flat.subarray(0, 10)), exchange.mean(flat.subarray(10, 30))]);
      expect([...flat]).toEqual(Array.from({ length: 30 }, (_, i) => i * 1.5));
      return group.sent().messages;
    });
    const single = await onRanks(2, async (group) => {
      await openExchange(group).mean(new Float32Array(30));
      return group.sent().messages;
    });
    expect(messages).toEqual(single);

    const apart = await onRanks(2, async (group) => {
      const vectors = [10, 0, 7, 13].map((n) => Float32Array.from({ length: n }, (_, i) => (i + n) * (group.rank + 1)));
      const exchange = openExchange(group);
      await Promise.all(vectors.map((x) => exchange.mean(x)));
      for (const x of vectors) expect([...x]).toEqual(Array.from(x, (_, i) => (i + x.length) * 1.5));
      return group.sent();
    });
    expect(apart.map(({ messages }) => messages)).toEqual(single);
    expect(apart.map(({ bytes }) => bytes)).toEqual([0, 1].map((rank) => meanCost(30, 2, rank).bytes));
  });

  it("stops all ranks together if one refuses, for every outcome and any number of ranks", async () => {
    for (const ranks of [1, 2, 3, 4])
      for (const operation of ["majority", "zero", "tally"] as const) {
        const outcomes = await onRanks(ranks, async (group) => {
          const exchange = openExchange(group);
          if (group.rank === ranks - 1) exchange.refuse("the loss is not finite");
          const requested =
            operation === "tally"
              ? exchange.tally(bits(100, 3))
              : exchange.majority(bits(100, 3), { tie: operation === "zero" ? "zero" : "plus" });
          return requested.then(
            () => "went on",
            (error: unknown) => error,
          );
        });
        for (const outcome of outcomes) {
          expect(outcome).toBeInstanceOf(StepRefusedError);
          expect((outcome as Error).message).toContain(`rank ${ranks - 1} refuses the step: the loss is not finite`);
        }
      }
  });

  it("hands out nothing of a round if one of its means is not accepted, and names the rank that refused", async () => {
    const outcomes = await onRanks(3, async (group) => {
      const x = new Float32Array(1000).fill(1); // the exchange itself makes it NaN on the rank that refuses
      const exchange = openExchange(group);
      if (group.rank === 1) exchange.refuse("the loss is not finite");
      const message = exchange
        .mean(x, { accept: () => x.every(Number.isFinite) })
        .catch((error: Error) => error.message);
      const vote = exchange.majority(bits(100, 3), { tie: "plus" }).catch(() => "no vote either");
      expect(await vote).toBe("no vote either");
      return message;
    });
    for (const outcome of outcomes) expect(outcome).toContain("rank 1 refuses the step: the loss is not finite");
  });

  it.each(["f32", "bf16", "int8"] as const)(
    "finds the reason for a mean that was not accepted before it carries the next exchange, in %s",
    async (type) => {
      for (const over of ["the same group", "a second group"]) {
        const outcomes = await onRanks(2, async (group) => {
          const gather = over === "the same group" ? group : (await group.split(0))!;
          const options = { down: gather, schemes: { means: dense(type) } };
          const first = openExchange(group, options)
            .mean(new Float32Array(4).fill(1), { accept: () => false })
            .catch((error: unknown) => error);
          // Rank 0 requests the next mean while the first is on the wire, rank 1 after it has arrived.
          await new Promise((next) => (group.rank === 0 ? setImmediate(next) : setTimeout(next, 30)));
          const y = new Float32Array(4).fill(group.rank === 0 ? 0 : 127);
          await openExchange(group, options).mean(y);
          const error = await first;
          if (gather !== group) await gather.close();
          return { error, y };
        });
        for (const { error, y } of outcomes) {
          expect(error, over).toBeInstanceOf(StepRefusedError);
          expect(y).toEqual(new Float32Array(4).fill(63.5));
        }
      }
    },
  );

  it("refuses in the same way if an element without a sign was encoded", async () => {
    const outcomes = await onRanks(2, async (group) => {
      const u = bits(100, 5);
      if (group.rank === 1) u.firstNonFinite = 17;
      return openExchange(group)
        .majority(u, { tie: "plus" })
        .catch((error: Error) => error.message);
    });
    for (const outcome of outcomes) expect(outcome).toContain("rank 1 refuses the step: the gradient is not finite");
  });

  it("encodes votes of one round when it sends them, and refuses if any of them is not finite", async () => {
    const lengths = [70, 64, 200];
    const lazyVotes = (n: number, k: number, bad = false) =>
      new PackedBits(n, undefined, (u, from, to) => {
        u.signs.subarray(from / 8).set(bits(n, 11 * (k + 1)).signs.subarray(from / 8, Math.ceil(to / 8)));
        if (bad) u.firstNonFinite = 3;
      });
    const results = await onRanks(3, async (group) => {
      const exchange = openExchange(group);
      const requested = lengths.map((n, k) => exchange.majority(lazyVotes(n, k), { tie: "plus" }));
      return (await Promise.all(requested)).map(({ wire }) => [...wire]);
    });
    for (const result of results) expect(result).toEqual(lengths.map((n, k) => [...bits(n, 11 * (k + 1)).wire]));

    const errors = await onRanks(3, async (group) => {
      const exchange = openExchange(group);
      const requested = lengths.map((n, k) =>
        exchange
          .majority(lazyVotes(n, k, group.rank === 2 && k === 1), { tie: "plus" })
          .catch((error: unknown) => error),
      );
      return Promise.all(requested);
    });
    for (const error of errors.flat())
      expect((error as Error).message).toContain("rank 2 refuses the step: the gradient is not finite");
  });

  it("keeps rounds in the same order on every rank when steps make further requests", async () => {
    const results = await onRanks(4, async (group) => {
      const exchange = openExchange(group);
      const step = async (k: number) => {
        const x = new Float32Array(3).fill(group.rank + k);
        await exchange.mean(x);
        using v = await exchange.majority(bits(70, group.rank < 3 ? 1 : 0), { tie: "plus" });
        const y = new Float32Array(5).fill(x[0]! * (group.rank + 1));
        await exchange.mean(y);
        return [x[0], v.wire[0], y[0]];
      };
      return Promise.all([0, 1, 2].map(step));
    });
    for (const result of results) expect(result).toEqual([0, 1, 2].map((k) => [1.5 + k, 0b00000001, (1.5 + k) * 2.5]));
  });
});
