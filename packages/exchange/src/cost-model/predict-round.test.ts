import { scaledSign } from "@terse/codecs";
import { describe, expect, it } from "vitest";
import { bytesOfRound, type Message, memoryOfRound } from "../messages.ts";
import { standardSchemes } from "../schemes.ts";
import { voteSchemes } from "../votes/vote-schemes.ts";
import type { Measured } from "./measure-link.ts";
import { predictMean, predictVote } from "./predict.ts";
import { predictRound, returningShare } from "./predict-round.ts";

const measured: Measured = {
  link: { alpha: 1e-4, alphaLong: 2e-4, perMessage: 0, perExchange: 0, beta: 8e-9, burst: 0 },
  codec: {
    encode: 1e-10,
    decode: 1e-10,
    vote: 1e-10,
    setField: 0,
    compareField: 0,
    encodeHalf: 0,
    decodeHalf: 0,
    encodeInt8: 0,
    sumInt8: 0,
    decodeInt8: 0,
  },
};
const seconds = (round: readonly Message[], ranks: number, schemes = standardSchemes) =>
  predictRound(round, ranks, schemes, measured);
const n = 1_000_000;

it("says in which share of a round the server of votes sends outcomes", () => {
  const server = { ...standardSchemes, votes: voteSchemes["parameter-server"].create() };
  const vote = (outcome: "plus" | "tally"): Message => ({ kind: "vote", n, outcome });
  expect(returningShare([vote("plus")], 4, server)).toBe(1 / 2);
  expect(returningShare([vote("tally")], 4, server)).toBe(3 / 4); // three planes down, one up
  const efficient = { ...standardSchemes, votes: voteSchemes["parameter-server-efficient"].create() };
  // Scattered; up, scattered, gathered.
  expect(returningShare([vote("plus")], 4, efficient)).toBeCloseTo(3 / 4 / (3 + 3 / 4 + 3 / 4));
  expect(returningShare([vote("tally")], 4, efficient)).toBeCloseTo(9 / 4 / (3 + 9 / 4 + 9 / 4));
  expect(returningShare([vote("plus")], 4, standardSchemes)).toBe(0);
  expect(returningShare([vote("plus"), { kind: "mean", n }], 4, server)).toBe(0);
  expect(returningShare([], 4, server)).toBe(0);
});

describe("the time of a round", () => {
  it("is that of one mean for all means", () => {
    const means: Message[] = [
      { kind: "mean", n, offset: 0 },
      { kind: "mean", n, offset: n },
      { kind: "mean", n },
    ];
    expect(seconds(means, 4)).toBe(predictMean("f32", { n: 3 * n, ranks: 4 }, measured).seconds);
  });

  it("is that of one vote for all votes with one outcome", () => {
    const votes: Message[] = [
      { kind: "vote", n, outcome: "plus" },
      { kind: "vote", n: 64, outcome: "plus" },
    ];
    const question = { n: n + 64, ranks: 4, planes: 1, floats: true };
    expect(seconds(votes, 4)).toBe(predictVote("all-to-all", question, measured).seconds);
    const count = { ...standardSchemes, votes: voteSchemes.count.create({}) };
    expect(seconds(votes, 4, count)).toBe(predictVote("count", question, measured).seconds);
    const counted: Message[] = [{ kind: "vote", n, outcome: "tally" }];
    expect(seconds(counted, 4)).toBe(
      predictVote("all-to-all", { n, ranks: 4, planes: 3, floats: true }, measured).seconds,
    );
  });

  it("of hosts' votes is two latencies, the bytes, and the signs that every scheme writes and reads", () => {
    const n = 2 ** 20; // equal parts
    const votes: Message[] = [{ kind: "vote", n, outcome: "plus" }];
    const schemes = { ...standardSchemes, votes: voteSchemes.hierarchical.create({ ranksPerHost: 2 }) };
    const bytes = bytesOfRound(votes, 4, 0, schemes);
    expect(seconds(votes, 4, schemes)).toBeCloseTo(2 * 2e-4 + bytes * 8e-9 + n * 2e-10, 12);
  });

  it("is two latencies and the bytes for what goes to owners and back", () => {
    const round: Message[] = [{ kind: "meanErrorCompensated", n, codec: scaledSign() as never }];
    const bytes = Math.max(...[0, 2].map((rank) => bytesOfRound(round, 3, rank, standardSchemes)));
    expect(bytes).toBeGreaterThan(n / 8);
    expect(seconds(round, 3)).toBeCloseTo(2 * 2e-4 + bytes * 8e-9, 12);
    expect(seconds([...round, { kind: "mean", n }], 3)).toBeCloseTo(
      seconds(round, 3) + predictMean("f32", { n, ranks: 3 }, measured).seconds,
      12,
    );
  });

  it("is that of an owner who sends to all others, whichever rank it is", () => {
    const round: Message[] = [{ kind: "computedMean", n: 1, owner: 1, result: 1000 }];
    expect(seconds(round, 4)).toBeCloseTo(2 * 2e-4 + 3 * 4 * (1 + 1000) * 8e-9, 12);
  });

  it("is that of the rank with most to send or to receive, up to owners and then down", () => {
    const of = (...owners: number[]): Message[] => owners.map((owner) => ({ kind: "computedMean", n, owner }));
    const bytes = (round: Message[], ranks: number) => (seconds(round, ranks) - 2 * 2e-4) / 8e-9 / (4 * n);
    expect(bytes(of(0, 1), 2)).toBeCloseTo(1 + 1, 6); // each sends one up, and one down
    expect(bytes(of(0, 0), 2)).toBeCloseTo(2 + 2, 6);
    expect(bytes(of(0, 1, 2, 3), 4)).toBeCloseTo(3 + 3, 6);
    expect(bytes(of(0, 1, 2), 4)).toBeCloseTo(3 + 3, 6); // rank 3 sends all three, and receives them
    expect(bytes(of(0, 0, 1), 3)).toBeCloseTo(4 + 4, 6); // rank 0 receives two from each
  });

  it("is that of slices, which owners receive once, where an owner would be too busy", () => {
    const of = (...owners: number[]): Message[] => owners.map((owner) => ({ kind: "computedMean", n, owner }));
    const bytes = (round: Message[], ranks: number) => (seconds(round, ranks) - 4 * 2e-4) / 8e-9 / (4 * n);
    expect(bytes(of(0), 4)).toBeCloseTo(2 * (3 / 4 + 1), 6);
    expect(bytes(of(0, 1), 8)).toBeCloseTo(2 * ((2 * 7) / 8 + 1), 6);
  });

  it("is that of one group of ranks for exchanges along an axis, although the others are not its members", () => {
    const round: Message[] = [{ kind: "reduce among", n, members: [0, 1] }];
    expect(seconds(round, 4)).toBeCloseTo(2 * 2e-4 + (1 / 2) * 4 * n * 8e-9, 12);
  });

  it("is nothing for one rank, and for no requests", () => {
    expect(seconds([{ kind: "mean", n }], 1)).toBe(0);
    expect(seconds([], 4)).toBe(0);
  });
});

it("the memory of a round is what its schemes hold", () => {
  const vote: Message = { kind: "vote", n, outcome: "plus" };
  const { votes } = standardSchemes;
  expect(memoryOfRound([vote], 4, 1, standardSchemes)).toBe(votes.cost(n, 4, 1, "plus").peakBytes);
  expect(memoryOfRound([vote, { kind: "mean", n }], 4, 1, standardSchemes)).toBe(
    votes.cost(n, 4, 1, "plus").peakBytes + standardSchemes.means.cost([n], 4, 1).peakBytes,
  );
});
