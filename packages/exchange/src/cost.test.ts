import { type Group, loopback } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import {
  Bits,
  type CostOf,
  majority,
  majorityCost,
  majorityOrZero,
  majorityOrZeroCost,
  mean,
  meanCost,
  scratchOf,
  tally,
  tallyCost,
} from "./index.ts";

const schemes: Record<string, { run: (group: Group, n: number) => Promise<unknown>; cost: CostOf }> = {
  mean: { run: (group, n) => mean(group, new Float32Array(n)), cost: meanCost },
  majority: { run: (group, n) => majority(group, new Bits(n), "plus"), cost: majorityCost },
  "majority or zero": { run: (group, n) => majorityOrZero(group, new Bits(n)), cost: majorityOrZeroCost },
  tally: { run: (group, n) => tally(group, new Bits(n)), cost: tallyCost },
};

const lengths = [0, 1, 63, 64, 65, 1000, 100_003];

describe.each(Object.entries(schemes))("the closed forms of %s", (_, { run, cost }) => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9])("say what the counters of %i ranks say", async (ranks) => {
    for (const n of lengths) {
      const groups = loopback(ranks);
      const results = await Promise.all(groups.map((group) => run(group, n)));
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
