import { sign } from "@terse/codecs";
import { loopback } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { type Measured, measureLink, noComputing } from "../cost-model/measure-link.ts";
import { allToAll, PackedBits } from "../index.ts";
import { vote } from "../testing/alone.ts";
import { voteContract } from "../testing/vote-contract.ts";
import { type AutoVoteScheme, auto } from "./auto.ts";

const network = (alpha: number, beta: number, perMessage = 0): Measured => ({
  link: { alpha, alphaLong: alpha, perMessage, perExchange: 0, beta, burst: 0 },
  codec: noComputing,
});

voteContract("auto, where bytes cost most", { scheme: () => auto({ measured: network(1e-6, 1e-3) }) });
voteContract("auto, where every message costs", { scheme: () => auto({ measured: network(1e-3, 1e-12, 1) }) });

describe("auto", () => {
  it("takes the scheme with the fewest bytes where bytes cost most, and reports the times of the others", () => {
    // 2²⁰ signs are 128 KiB; at 8 µs a byte (1 Mbit/s) all-to-all carries 2 · 3/4 of them: 1.57 s. Fields of 4 bits:
    // 6.3 s.
    const { scheme, why } = auto({ measured: network(1e-3, 8e-6) }).choice(2 ** 20, 4);
    expect(scheme).toBe("all-to-all");
    expect(why).toBe(
      "a vote of 1048576 elements among 4 ranks (α 1.0 ms, 1.0 Mbit/s) should take: all-to-all 1.6 s; parameter-server-efficient 4.7 s, parameter-server 6.3 s, count in 4-bit fields 6.3 s; a mean in f32 50 s, in bf16 25 s, in int8 19 s",
    );
  });

  it("leaves out a mean in int8 if there are too many ranks for it", () => {
    const { choice } = auto({ measured: network(1e-3, 8e-6) });
    expect(choice(2 ** 20, 257).why).toContain(", in int8 ");
    expect(choice(2 ** 20, 258).why).not.toContain("int8");
  });

  it("takes another scheme where each message costs, until the bytes cost more", () => {
    // 16 ranks, 10 ms a message. All-to-all goes in 16 chunks, each there and back: 480 messages, 4.8 s. Counts take 15
    // empty messages and one pass of the ring. 2²⁶ elements: 8-bit fields carry 126 MB, 1 s at 8 ns a byte. 2³¹: 4 GB,
    // 32 s, against 0.5 GB.
    const of = auto({ measured: network(1e-3, 8e-9, 1e-2) });
    expect([2 ** 26, 2 ** 31].map((n) => of.choice(n, 16).scheme)).toEqual(["count", "all-to-all"]);
  });

  it("has the cost of the chosen scheme", () => {
    const measured = network(1e-3, 8e-6);
    const { scheme } = auto({ measured }).choice(1e6, 5);
    expect(scheme).toBe("all-to-all");
    const votes = auto({ measured });
    expect(votes.cost(1e6, 5, 3)).toEqual(allToAll().cost(1e6, 5, 3));
    votes.cost(1e6, 5, 2); // the same question
    votes.cost(1e6, 4, 2, "zero");
    expect(votes.choices().map(({ question: { ranks, planes }, scheme }) => [ranks, planes, scheme])).toEqual([
      [5, 1, "all-to-all"],
      [4, 2, "all-to-all"],
    ]);
  });

  it("leaves out schemes that this many ranks cannot use", () => {
    const { predictions } = auto({ measured: network(1e-3, 8e-6) }).choice(1e6, 70_000);
    expect(predictions.map(({ scheme }) => scheme)).not.toContain("count"); // fields have at most 16 bits
  });

  it("makes the same choice on all ranks, from their common measurements", async () => {
    const groups = loopback(3);
    const schemes = await Promise.all(groups.map(async (group) => auto({ measured: await measureLink(group) })));
    const why = (scheme: AutoVoteScheme) => [10, 1e4, 1e7].map((n) => scheme.choice(n, 3, "zero").why);
    for (const scheme of schemes) expect(why(scheme)).toEqual(why(schemes[0]!));

    const votes = await Promise.all(
      groups.map(async (group, r) => {
        const u = new PackedBits(100);
        sign.encode(
          u.signs,
          Float32Array.from({ length: 100 }, (_, i) => (i % 3 === r ? 1 : -1) * (i % 2 === 0 ? 1 : -1)),
          { zero: "plus" },
        );
        return [...((await vote(schemes[r]!, group, u, { outcome: "plus" })) as PackedBits).signs];
      }),
    );
    // One of the three ranks votes otherwise: an even element is minus.
    expect(votes[0]).toEqual([...new Uint8Array(12).fill(0b10101010), 0b1010]);
    expect(votes[1]).toEqual(votes[0]);
    expect(votes[2]).toEqual(votes[0]);
    await Promise.all(groups.map((group) => group.close()));
  });

  it("names missing measurements", () => {
    expect(() => auto({} as never)).toThrow("auto: measured is missing");
  });
});
