import { sign } from "@terse/codecs";
import { describe, expect, it } from "vitest";
import {
  allToAll,
  count,
  hierarchical,
  openExchange,
  PackedBits,
  parameterServer,
  parameterServerEfficient,
  StepRefusedError,
} from "../index.ts";
import { scratchOf } from "../scratch.ts";
import { majorityCost, vote } from "../testing/alone.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { outcomeOf, packed, voteContract } from "../testing/vote-contract.ts";

voteContract("all-to-all", { scheme: () => allToAll() });
voteContract("all-to-all in chunks", { scheme: () => allToAll({ chunk: 960 }) });
voteContract("count", { scheme: () => count() });
voteContract("count in fields of 8 bits", { scheme: () => count({ width: 8 }) });
voteContract("count in fields of 16 bits", { scheme: () => count({ width: 16 }) });
voteContract("parameter-server", { scheme: parameterServer });
voteContract("parameter-server-efficient", { scheme: parameterServerEfficient });

/** The contract of votes by hosts: first the ranks of each host, then one vote for each host. */
function byHosts(hosts: (ranks: number) => readonly number[]): Parameters<typeof voteContract>[1] {
  return {
    scheme: (ranks) => hierarchical({ hosts: hosts(ranks) }),
    oracle: (votes, outcome) => {
      const of = hosts(votes.length);
      const votesOfHosts = [...new Set(of)].map((host) =>
        outcomeOf(
          votes.filter((_, r) => of[r] === host),
          outcome,
        ),
      );
      return outcomeOf(votesOfHosts, outcome);
    },
  };
}

voteContract("hierarchical, two ranks a host", {
  ...byHosts((ranks) => Array.from({ length: ranks }, (_, r) => Math.floor(r / 2))),
  scheme: () => hierarchical({ ranksPerHost: 2 }),
});
voteContract(
  "hierarchical, three hosts whose ranks alternate",
  byHosts((ranks) => Array.from({ length: ranks }, (_, r) => 7 - (r % 3))),
);
voteContract(
  "hierarchical, one host with one rank",
  byHosts((ranks) => Array.from({ length: ranks }, (_, r) => (r === 1 ? 5 : 2))),
);
voteContract("hierarchical, one host", { scheme: (ranks) => hierarchical({ ranksPerHost: ranks }) });

voteContract("hierarchical and dense inside, two ranks a host", {
  ...byHosts((ranks) => Array.from({ length: ranks }, (_, r) => Math.floor(r / 2))),
  scheme: () => hierarchical({ ranksPerHost: 2, inside: "dense" }),
});
voteContract("hierarchical and dense inside, one host with one rank", {
  ...byHosts((ranks) => Array.from({ length: ranks }, (_, r) => (r === 1 ? 5 : 2))),
  scheme: (ranks) =>
    hierarchical({ hosts: Array.from({ length: ranks }, (_, r) => (r === 1 ? 5 : 2)), inside: "dense" }),
});

describe("hosts that are dense inside", () => {
  /** Multiples of 1/8, some 0, some that add up to 0, whose size grows with the rank: sums are exact. */
  const value = (rank: number, i: number) => ((((i * 389 + rank * 101) % 17) - 8) * (1 + (rank % 3))) / 8;
  const signed = (rank: number, n: number, zero: "plus" | "minus") =>
    new PackedBits(n, undefined, undefined, {
      zero,
      write: (into) => into.set(Float32Array.from({ length: n }, (_, i) => value(rank, i))),
    });

  it.each([2, 3, 4, 5, 6, 7, 8, 9])("vote as the sum of their ranks, on %i ranks", async (ranks) => {
    const signs = ["plus", "minus"] as const;
    const cases = signs.flatMap((zero) =>
      signs.flatMap((tie) => [[0], [1], [63, 65], [1000], [70, 64, 200]].map((lengths) => ({ zero, tie, lengths }))),
    );
    for (const hostOf of [(r: number) => Math.floor(r / 3), (r: number) => 9 - (r % 2), () => 4]) {
      const hosts = Array.from({ length: ranks }, (_, r) => hostOf(r));
      const scheme = hierarchical({ hosts, inside: "dense" });
      const got = await onRanks(ranks, async (group) => {
        const exchange = openExchange(group, { schemes: { votes: scheme } });
        const all: number[][][] = []; // the wires of each case
        for (const { zero, tie, lengths } of cases) {
          const votes = lengths.map((n) => exchange.majority(signed(group.rank, n, zero), { tie }));
          all.push((await Promise.all(votes)).map(({ wire }) => [...wire]));
        }
        expect(group.sent().bytes).toBe(0); // everything goes over groups that are split off
        await scheme.close(group);
        return all;
      });
      for (const [k, { zero, tie, lengths }] of cases.entries()) {
        const expected = lengths.map((n) =>
          Array.from({ length: n }, (_, i) => {
            let sum = 0;
            for (const host of new Set(hosts)) {
              const c = hosts.reduce((of, each, r) => of + (each === host ? value(r, i) : 0), 0);
              sum += Math.sign(c) || (zero === "plus" ? 1 : -1);
            }
            return Number((Math.sign(sum) || (tie === "plus" ? 1 : -1)) > 0);
          }),
        );
        for (const wires of got) expect(wires[k]).toEqual(got[0]![k]);
        for (const [j, wire] of got[0]![k]!.entries()) {
          const bits = wire.flatMap((byte) => Array.from({ length: 8 }, (_, i) => (byte >> i) & 1));
          expect(bits.slice(0, lengths[j])).toEqual(expected[j]);
          expect(bits.slice(lengths[j]).some(Boolean)).toBe(false);
        }
      }
    }
  });

  it("keep apart votes with different signs of zero", async () => {
    const got = await onRanks(2, async (group) => {
      const votes = hierarchical({ ranksPerHost: 2, inside: "dense" });
      const exchange = openExchange(group, { schemes: { votes } });
      const nothing = { write: (into: Float32Array) => void into.fill(0) };
      const [plus, minus] = await Promise.all(
        (["plus", "minus"] as const).map((zero) =>
          exchange.majority(new PackedBits(8, undefined, undefined, { zero, ...nothing }), { tie: "plus" }),
        ),
      );
      await votes.close(group);
      return [plus!.signs[0], minus!.signs[0]];
    });
    for (const signs of got) expect(signs).toEqual([0xff, 0]);
  });

  it("stop together if a sum is not finite, on any owner", async () => {
    for (const at of [0, 999]) {
      const outcomes = await onRanks(5, async (group) => {
        const votes = hierarchical({ ranksPerHost: 2, inside: "dense" });
        const write = (into: Float32Array) => void into.fill(1).fill(group.rank < 2 ? 3e38 : 1, at, at + 1);
        const u = new PackedBits(1000, undefined, undefined, { zero: "plus", write });
        const error = await vote(votes, group, u, { outcome: "plus" }).catch((error: unknown) => error);
        await votes.close(group);
        return { error, live: scratchOf(group).live };
      });
      for (const { error, live } of outcomes) {
        expect(error).toBeInstanceOf(StepRefusedError);
        expect((error as Error).message).toContain("the step is refused: the mean gradient is not finite");
        expect(live).toBe(0);
      }
    }
  });
});

describe("a unanimous vote", () => {
  const x = (n: number) =>
    Float32Array.from({ length: n }, (_, i) => (i % 9 === 4 ? (i % 2 ? -0 : 0) : Math.sin(i * i + n)));

  it.each([1, 2, 3, 5, 8])("gives back the signs of 1 to 257 floats, and pads of 0, on %i ranks", async (ranks) => {
    const lengths = Array.from({ length: 257 }, (_, k) => k + 1);
    const got = await onRanks(ranks, async (group) => {
      const exchange = openExchange(group);
      const wires: Buffer[] = [];
      for (const n of lengths) {
        using u = new PackedBits(n);
        sign.encode(u.signs, x(n), { zero: "plus" });
        const before = group.sent().bytes;
        using v = await exchange.majority(u, { tie: "minus" });
        expect(group.sent().bytes - before, `n = ${n}`).toBe(majorityCost(n, ranks, group.rank).bytes);
        wires.push(Buffer.from(v.wire));
      }
      return wires;
    });
    for (const n of lengths) {
      const expected = Buffer.alloc(8 * Math.ceil(n / 64));
      for (const [i, value] of x(n).entries()) if (value >= 0) expected[i >> 3]! |= 1 << (i & 7);
      for (const wires of got) expect(wires[n - 1]!.equals(expected), `n = ${n}`).toBe(true);
    }
  });
});

describe("vote schemes", () => {
  it("refuse wrong options, and suggest right ones", async () => {
    expect(() => allToAll({ chunk: 100 })).toThrow("chunk is 100, and must be a multiple of 64 elements; take 128");
    expect(() => hierarchical({})).toThrow("ranksPerHost is missing");
    expect(() => hierarchical({ hosts: [0, 0, 1] }).cost(10, 4, 0)).toThrow("the hosts of 3 ranks, and there are 4");
    expect(() => hierarchical({ ranksPerHost: 0 })).toThrow("1 or more");
    expect(() => hierarchical({ ranksPerHost: 2 }).cost(10, 4, 0, "zero")).toThrow(
      "does not support a tie of zero; it supports a tie of plus or minus",
    );
    expect(() => count({ width: 3 })).toThrow("width is 3, and fields of 1 bit per float are 2, 4, 8 or 16 bits wide");
    expect(() => count({ width: 2 }).cost(10, 4, 0)).toThrow("take a width of 4");
    const errors = await onRanks(4, (group) =>
      vote(count({ width: 2 }), group, packed(group.rank, 10), { outcome: "plus" }).catch((error: unknown) => error),
    );
    for (const error of errors)
      expect(String(error)).toContain("4 ranks of 1 bit sum up to 4, and a field of 2 bits holds 3");
  });

  /** The actions of rank 0, in order, in a vote of four chunks and in the next vote of the queue. */
  async function order(ranks: number): Promise<string[]> {
    const [happened] = await onRanks(ranks, async (group) => {
      const gather = (await group.split(0))!;
      const log: string[] = [];
      const [up, down] = [group.allToAll.bind(group), gather.allGather.bind(gather)];
      group.allToAll = (...given) => {
        log.push("up");
        return up(...given);
      };
      gather.allGather = (...given) => {
        log.push("down");
        return down(...given);
      };
      const u = new PackedBits(250, undefined, (_, from, to) => log.push(`encode ${from} to ${to}`));
      const first = vote(allToAll({ chunk: 64 }), group, u, { outcome: "plus", down: gather });
      const next = new PackedBits(1, undefined, () => log.push("encode the next"));
      const second = vote(allToAll(), group, next, { outcome: "plus", down: gather });
      await Promise.all([first, second]);
      await gather.close();
      return log;
    });
    return happened!;
  }

  it("encode a chunk while the one before is on the wire, and count it while the next one is", async () => {
    expect(await order(3)).toEqual([
      ...["encode 0 to 64", "up", "encode 64 to 128", "up", "encode the next"],
      ...["down", "encode 128 to 192", "up", "down", "encode 192 to 250", "up"],
      ...["up", "down", "down", "down"], // the next vote goes up before the last chunks come down
    ]);
    // Two ranks both count everything: nothing comes back.
    expect(await order(2)).toEqual([
      ...["encode 0 to 64", "up", "encode 64 to 128", "up", "encode the next"],
      ...["encode 128 to 192", "up", "encode 192 to 250", "up", "up"],
    ]);
  });

  it("take the narrowest fields: 2 bits for 3 ranks, 4 for 15, 8 for 255, and 16 for more", () => {
    const n = 2 ** 20;
    const bits = (ranks: number) => (8 * count().cost(n, ranks, 0).peakBytes) / n;
    expect([2, 3, 4, 15, 16, 255, 256, 1000].map(bits)).toEqual([2, 2, 4, 4, 8, 8, 16, 16]);
  });

  it("send 1/32 of the bytes of a 32-bit mean, for a large vector", () => {
    const n = 124_000_000;
    expect((2 * 7 * 4 * n) / 8 / majorityCost(n, 8, 0).bytes).toBeCloseTo(32, 2);
  });

  it("hold less than 0.05 bytes a parameter besides the signs, in chunks", () => {
    const n = 124_000_000;
    for (const ranks of [2, 8, 64]) expect(majorityCost(n, ranks, 0).peakBytes / n).toBeLessThan(0.05);
  });
});
