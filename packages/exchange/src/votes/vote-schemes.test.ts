import { describe, expect, it } from "vitest";
import {
  allToAll,
  Bits,
  count,
  hierarchical,
  majorityCost,
  parameterServer,
  parameterServerEfficient,
  voteSchemes,
} from "../index.ts";
import { onRanks } from "../testing.ts";
import { outcomeOf, packed, voteContract } from "./vote-contract.ts";

voteContract("all-to-all", { scheme: () => allToAll() });
voteContract("all-to-all in chunks", { scheme: () => allToAll({ chunk: 960 }) });
voteContract("count", { scheme: () => count() });
voteContract("count in fields of 8 bits", { scheme: () => count({ width: 8 }) });
voteContract("count in fields of 16 bits", { scheme: () => count({ width: 16 }) });
voteContract("parameter-server", { scheme: parameterServer });
voteContract("parameter-server-efficient", { scheme: parameterServerEfficient });

/** Hosts in the order of the ranks' first, then one vote a host. */
function byHosts(hosts: (ranks: number) => readonly number[]): Parameters<typeof voteContract>[1] {
  return {
    scheme: (ranks) => hierarchical({ hosts: hosts(ranks) }),
    oracle: (votes, outcome) => {
      const of = hosts(votes.length);
      const heard = [...new Set(of)].map((host) =>
        outcomeOf(
          votes.filter((_, r) => of[r] === host),
          outcome,
        ),
      );
      return outcomeOf(heard, outcome);
    },
  };
}

voteContract("hierarchical, two ranks a host", {
  ...byHosts((ranks) => Array.from({ length: ranks }, (_, r) => Math.floor(r / 2))),
  scheme: () => hierarchical({ hosts: 2 }),
});
voteContract(
  "hierarchical, three hosts whose ranks alternate",
  byHosts((ranks) => Array.from({ length: ranks }, (_, r) => 7 - (r % 3))),
);
voteContract(
  "hierarchical, one host with one rank",
  byHosts((ranks) => Array.from({ length: ranks }, (_, r) => (r === 1 ? 5 : 2))),
);
voteContract("hierarchical, one host", { scheme: (ranks) => hierarchical({ hosts: ranks }) });

describe("vote schemes", () => {
  it("refuse what cannot be right, and say what would be", async () => {
    expect(() => allToAll({ chunk: 100 })).toThrow("a chunk is a multiple of 64 elements, and is 100; take 128");
    expect(() => voteSchemes.hierarchical({})).toThrow("hosts is missing");
    expect(() => hierarchical({ hosts: [0, 0, 1] }).cost(10, 4, 0)).toThrow("the hosts of 3 ranks, and there are 4");
    expect(() => hierarchical({ hosts: 0 }).cost(10, 4, 0)).toThrow("1 or more");
    expect(() => hierarchical({ hosts: 2 }).cost(10, 4, 0, "zero")).toThrow(
      "cannot give a tie of zero; it gives a tie of plus or minus",
    );
    expect(() => count({ width: 2 }).cost(10, 4, 0)).toThrow("take a width of 4");
    const errors = await onRanks(4, (group) =>
      count({ width: 2 })
        .vote(group, packed(group.rank, 10), { outcome: "plus" })
        .catch((error: unknown) => error),
    );
    for (const error of errors)
      expect(String(error)).toContain("4 ranks of 1 bit sum up to 4, and a field of 2 bits holds 3");
  });

  /** What rank 0 does, in order, of a vote in four chunks. */
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
      const u = new Bits(250, undefined, (_, from, to) => log.push(`encode ${from} to ${to}`));
      const sent = () => void (log.includes("sent") || log.push("sent"));
      await allToAll({ chunk: 64 }).vote(group, u, { outcome: "plus", gather, sent });
      await gather.close();
      return log;
    });
    return happened!;
  }

  it("encode a chunk while the one before is on the wire, and count it while the next is", async () => {
    expect(await order(3)).toEqual([
      ...["encode 0 to 64", "up", "encode 64 to 128", "up", "down"],
      ...["encode 128 to 192", "up", "down", "encode 192 to 250", "up", "sent", "down"],
      "down",
    ]);
    // Two ranks both count everything: nothing comes back.
    expect(await order(2)).toEqual([
      ...[
        "encode 0 to 64",
        "up",
        "encode 64 to 128",
        "up",
        "encode 128 to 192",
        "up",
        "encode 192 to 250",
        "up",
        "sent",
      ],
    ]);
  });

  it("take the narrowest fields with room: 3 ranks in 2 bits, 15 in 4, 255 in 8, and more in 16", () => {
    const n = 2 ** 20;
    const bits = (ranks: number) => (8 * count().cost(n, ranks, 0).peakBytes) / n;
    expect([2, 3, 4, 15, 16, 255, 256, 1000].map(bits)).toEqual([2, 2, 4, 4, 8, 8, 16, 16]);
  });

  it("send 1/32 of what a 32-bit mean sends, for a large vector", () => {
    const n = 124_000_000;
    expect((2 * 7 * 4 * n) / 8 / majorityCost(n, 8, 0).bytes).toBeCloseTo(32, 2);
  });

  it("hold less than 0.05 bytes a parameter beside the signs, in chunks", () => {
    const n = 124_000_000;
    for (const ranks of [2, 8, 64]) expect(majorityCost(n, ranks, 0).peakBytes / n).toBeLessThan(0.05);
  });
});
