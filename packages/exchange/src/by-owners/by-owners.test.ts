import { type Codec, dctTopK, int8, l1, linf, qsgd, scaledSign, terngrad, topK } from "@terse/codecs";
import { type Group, loopback } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import type { Cost } from "../cost.ts";
import { openExchange, ownedElements } from "../index.ts";
import { scratchOf } from "../scratch.ts";
import {
  computedMean,
  computedMeanCost,
  meanErrorCompensated,
  meanErrorCompensatedCost,
  signOfLevels,
  signOfLevelsCost,
  sparse,
  sparseCost,
  sum,
  sumCost,
  sumOfFields,
  sumOfFieldsCost,
  sumOfLevels,
  sumOfLevelsCost,
  sumOfLevelsDirect,
  sumOfLevelsDirectCost,
} from "../testing/alone.ts";
import { onRanks } from "../testing/on-ranks.ts";

interface Scheme {
  run: (group: Group, x: Float32Array) => Promise<unknown>;
  cost: (n: number, ranks: number, rank: number) => Cost;
}

const draws = { seed: 1, step: 2 };

const levels = (codec: Codec): Record<string, Scheme> => ({
  [`sum of levels, ${codec.name}`]: {
    run: (group, x) => sumOfLevels(group, x, { codec, into: new Float32Array(x.length), ...draws }),
    cost: (n, ranks, rank) => sumOfLevelsCost(n, ranks, rank, codec),
  },
  [`direct sum of levels, ${codec.name}`]: {
    run: (group, x) => sumOfLevelsDirect(group, x, { codec, into: new Float32Array(x.length), ...draws }),
    cost: (n, ranks, rank) => sumOfLevelsDirectCost(n, ranks, rank, codec),
  },
  [`sign of levels, ${codec.name}`]: {
    run: (group, x) => signOfLevels(group, x, { codec, ...draws }),
    cost: (n, ranks, rank) => signOfLevelsCost(n, ranks, rank, codec),
  },
});

const fields = (what: string, codec: Codec): Record<string, Scheme> => ({
  [`sum of fields, ${what}`]: {
    run: (group, x) => sumOfFields(group, x, { codec, into: new Float32Array(x.length), ...draws }),
    cost: (n, ranks, rank) => sumOfFieldsCost(n, ranks, rank, codec),
  },
});

const summed = (what: string, codec: Codec): Record<string, Scheme> => ({
  [`sum, ${what}`]: {
    run: (group, x) => sum(group, x, { codec, into: new Float32Array(x.length), ...draws }),
    cost: (n, ranks, rank) => sumCost(n, ranks, rank, codec),
  },
});

const compensated = (what: string, codec: Codec): Record<string, Scheme> => ({
  [`error-compensated mean, ${what}`]: {
    run: (group, x) =>
      meanErrorCompensated(group, x, {
        codec,
        into: new Float32Array(x.length),
        workerError: new Float32Array(x.length),
        serverError: new Float32Array(ownedElements(x.length, group.size, group.rank, codec)),
        ...draws,
      }),
    cost: (n, ranks, rank) => meanErrorCompensatedCost(n, ranks, rank, codec),
  },
});

const few = (what: string, codec: Codec): Record<string, Scheme> => ({
  [`sparse, ${what}`]: {
    run: (group, x) => sparse(group, x, { codec, into: new Float32Array(x.length) }),
    cost: (n, ranks, rank) => sparseCost(n, ranks, rank, codec),
  },
});

/** The last rank computes a result of twice the length. */
const computed: Record<string, Scheme> = {
  "a computed mean": {
    run: (group, x) =>
      computedMean(group, x, {
        owner: group.size - 1,
        compute: (_, result) => result.fill(1),
        into: new Float32Array(2 * x.length),
      }),
    cost: (n, ranks, rank) => computedMeanCost(n, ranks, rank, ranks - 1, 2 * n),
  },
};

const schemes: Record<string, Scheme> = {
  ...computed,
  ...levels(l1({ bits: 3, unscaled: true })),
  ...levels(linf({ bits: 8, unscaled: true, block: 40 })),
  ...fields("int8 in blocks", int8({ block: 40 })),
  ...fields("l1", l1({ bits: 3 })),
  ...fields("qsgd", qsgd({ bits: 5, block: 64 }) as Codec),
  ...summed("int8", int8()),
  ...summed("int8 in blocks", int8({ block: 100 })),
  ...summed("l1", l1({ bits: 5, block: 64 })),
  ...compensated("scaled sign", scaledSign() as Codec),
  ...compensated("scaled sign in blocks", scaledSign({ block: 24 }) as Codec),
  ...compensated("terngrad", terngrad() as Codec),
  ...compensated("cosines", dctTopK({ block: 16, k: 3 })),
  ...few("top-k", topK({ k: 1 })),
  ...few("cosines", dctTopK({ block: 64, k: 8 })),
};

const lengths = [0, 1, 63, 64, 65, 1000, 100_003];

describe.each(Object.entries(schemes))("the closed forms of %s", (_, { run, cost }) => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9])("equal the counters of %i ranks", async (ranks) => {
    for (const n of lengths) {
      const groups = loopback(ranks);
      const results = await Promise.all(groups.map((group) => run(group, new Float32Array(n).fill(group.rank + 1))));
      for (const group of groups) {
        const { bytes, messages } = group.sent();
        const counted = { bytes, messages, peakBytes: scratchOf(group).peak };
        expect(counted, `n = ${n}, rank ${group.rank}`).toEqual(cost(n, ranks, group.rank));
      }
      for (const result of results) (result as Disposable | undefined)?.[Symbol.dispose]();
      expect(groups.map((group) => scratchOf(group).live)).toEqual(groups.map(() => 0));
      await Promise.all(groups.map((group) => group.close()));
    }
  });
});

describe("a sum by owners", () => {
  it("goes up while the sums before it come down over a second group", async () => {
    const [happened] = await onRanks(3, async (group) => {
      const gather = (await group.split(0))!;
      const log: string[] = [];
      const [up, down] = [group.allToAll.bind(group), gather.allToAll.bind(gather)];
      group.allToAll = (...given) => {
        log.push("up");
        return up(...given);
      };
      gather.allToAll = (...given) => {
        log.push("down");
        return down(...given);
      };
      const codec = l1({ bits: 3, unscaled: true });
      const steps = [1, 2, 3].map((n) =>
        openExchange(group, { down: gather }).signOfLevels(new Float32Array(n), { codec }),
      );
      await Promise.all(steps);
      await gather.close();
      return log;
    });
    expect(happened).toEqual(["up", "up", "up", "down", "down", "down"]);
  });

  it("ends the group on every rank if a rank sends a wire that no encoder writes", async () => {
    const groups = loopback(3);
    const codec = int8({ block: 8 });
    const outcomes = await Promise.allSettled(
      groups.map(async (group, rank) => {
        if (rank !== 1) return sum(group, new Float32Array(48).fill(1), { codec, into: new Float32Array(48) });
        // Two blocks for each owner, with NaN as scales. Rank 1 does not reduce its own chunk.
        const wires = (bytes: number) => groups.map((_, r) => new Uint8Array(r === rank ? 0 : bytes).fill(0xff));
        await group.allToAll(wires(24), wires(24));
        return group.allToAll(wires(24), wires(24));
      }),
    );
    for (const outcome of outcomes) {
      expect(outcome.status).toBe("rejected");
      expect(String((outcome as PromiseRejectedResult).reason)).toMatch(/no encoder writes such a wire/);
    }
    await Promise.all(groups.map((group) => group.close()));
  });
});
