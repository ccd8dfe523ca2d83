import { loopback } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { meanIn } from "../testing/alone.ts";
import { type Measured, noComputing } from "./measure-link.ts";
import { predictedVotes, predictMean, predictVote, predictVoteOfHosts } from "./predict.ts";

// Times of different sizes, so that a sum shows its terms: α 1, a long message 2, a further message 0.01, a byte 10⁻⁶,
// no computing.
const measured: Measured = {
  link: { alpha: 1, alphaLong: 2, perMessage: 0.01, perExchange: 0, beta: 1e-6, burst: 0 },
  codec: noComputing,
};
const kibi = 1024;
const mebi = kibi * kibi;

describe("a vote", () => {
  it("of 4 ranks, all-to-all: a quarter to each of three ranks, and the outcome back to each of three", () => {
    // 1 Mi signs are 128 KiB, a part 32 KiB: too long to be sent together with its header.
    // The two further messages start while the bytes of the first are on the wire.
    const once = 2 + 3 * 32 * kibi * 1e-6;
    expect(predictVote("all-to-all", { n: mebi, ranks: 4 }, measured).seconds).toBeCloseTo(2 * once, 9);
    // If a tie is zero, two planes come down.
    expect(predictVote("all-to-all", { n: mebi, ranks: 4, planes: 2 }, measured).seconds).toBeCloseTo(3 * once, 9);
  });

  it("of 4 ranks on 1.5 Mi elements has two chunks", () => {
    // 1 Mi signs as above, then half a Mi: parts of 32 and of 16 KiB.
    const of = (part: number) => 2 * (2 + 3 * part * kibi * 1e-6);
    const { seconds } = predictVote("all-to-all", { n: 1.5 * mebi, ranks: 4 }, measured);
    expect(seconds).toBeCloseTo(of(32) + of(16), 9);
  });

  it("of 4 ranks, by one server: three vectors through its link, and three back", () => {
    const { seconds } = predictVote("parameter-server", { n: mebi, ranks: 4 }, measured);
    expect(seconds).toBeCloseTo(2 * (2 + 3 * 128 * kibi * 1e-6), 9);
  });

  it("of 4 ranks, by a tree: two rounds up, the second with two vectors; then a scatter and an all-gather", () => {
    const vector = 128 * kibi * 1e-6;
    const up = 2 + vector + (2 + 2 * vector);
    const down = 2 * (2 + 0.75 * vector);
    const { seconds } = predictVote("parameter-server-efficient", { n: mebi, ranks: 4 }, measured);
    expect(seconds).toBeCloseTo(up + down, 9);
    const both = predictVote("parameter-server-efficient", { n: mebi, ranks: 4, planes: 2 }, measured);
    expect(both.seconds).toBeCloseTo(up + 2 * down, 9);
  });

  it("of 3 ranks, by a tree: two vectors through the server's link, one after the other", () => {
    const vector = 128 * kibi * 1e-6;
    const own = 8 * Math.ceil(mebi / 64 / 3); // bytes of the largest part
    const down = 2 * (2 + 2 * own * 1e-6);
    const { seconds } = predictVote("parameter-server-efficient", { n: mebi, ranks: 3 }, measured);
    expect(seconds).toBeCloseTo(2 + 2 * vector + down, 9);
  });

  it("of 4 ranks, by counts: empty messages with the notes, then 4-bit fields in a ring", () => {
    const fast = { ...measured, link: { ...measured.link, alpha: 1e-3, alphaLong: 2e-3, perMessage: 0 } };
    const { seconds } = predictVote("count", { n: mebi, ranks: 4 }, fast);
    expect(seconds).toBeCloseTo(1e-3 + 2e-3 + 1.5 * 512 * kibi * 1e-6, 9);
    const slow = { ...fast, codec: { ...fast.codec, setField: 1e-6, compareField: 2e-6 } };
    expect(predictVote("count", { n: mebi, ranks: 4, planes: 2 }, slow).computing).toBeCloseTo(512 * kibi * 5e-6, 9);
  });

  it("on few elements takes two latencies, and the overhead of its messages", () => {
    // 64 Ki signs are 8 KiB, a part 2 KiB: its bytes have been sent before two further messages start.
    const { seconds } = predictVote("all-to-all", { n: 64 * kibi, ranks: 4 }, measured);
    expect(seconds).toBeCloseTo(2 * (1 + 2 * 0.01), 9);
  });

  it("includes counting the votes of the last chunk", () => {
    const slow = { ...measured, codec: { ...measured.codec, vote: 1e-3 } };
    const { wire, computing, seconds } = predictVote("all-to-all", { n: 8 * kibi, ranks: 4 }, slow);
    expect(computing).toBeCloseTo(kibi * 1e-3, 9); // 256 bytes from each of 4
    expect(seconds).toBe(wire + computing);
  });

  it("of two ranks needs one message, and each rank counts all votes", () => {
    const slow = { ...measured, codec: { ...measured.codec, vote: 1e-3 } };
    const { wire, computing } = predictVote("all-to-all", { n: 8 * kibi, ranks: 2, planes: 2 }, slow);
    expect(wire).toBeCloseTo(measured.link.alpha + kibi * measured.link.beta, 9);
    expect(computing).toBeCloseTo(2 * kibi * 1e-3, 9); // its own and the other's
  });

  it("of 2 hosts of 4 ranks: a quarter to each rank of the host, half of that to the other host, and the same back", () => {
    const inside = { ...measured.link, alphaLong: 0.25, perMessage: 0, beta: 1e-9 };
    const question = { n: mebi, ranks: 8, ranksPerHost: 4 };
    const { seconds } = predictVoteOfHosts(question, measured, inside);
    expect(seconds).toBeCloseTo(2 * (0.25 + 3 * 32 * kibi * 1e-9) + 2 * (2 + 16 * kibi * 1e-6), 9);
    // With one host, or one rank on each, it is an all-to-all, and two empty operations.
    const flat = predictVote("all-to-all", { n: mebi, ranks: 8 }, measured).seconds;
    for (const ranksPerHost of [1, 8])
      expect(predictVoteOfHosts({ ...question, ranksPerHost }, measured).seconds).toBeCloseTo(flat, 9);
  });

  it("of hosts on one link has one token bucket for the messages inside and between hosts", () => {
    const of = (burst: number) => {
      const link = { ...measured.link, beta: 1, burst };
      return predictVoteOfHosts({ n: mebi, ranks: 8, ranksPerHost: 4 }, { ...measured, link }).seconds;
    };
    const saved = of(0) - of(1000);
    expect(saved).toBeGreaterThanOrEqual(1000);
    expect(saved).toBeLessThan(1010); // the bucket is refilled a little during the latencies
  });

  it("on floats includes encoding and decoding", () => {
    const slow = { ...measured, codec: { ...measured.codec, encode: 1e-6, decode: 3e-6 } };
    const question = { n: mebi, ranks: 4 };
    const signs = predictVote("all-to-all", question, slow);
    const floats = predictVote("all-to-all", { ...question, floats: true }, slow);
    expect(floats.computing - signs.computing).toBeCloseTo(4e-6 * mebi, 9);
    expect(floats.wire).toBe(signs.wire);
  });

  it("in chunks counts the votes of each chunk while the next one is on the wire, except the last", () => {
    const slow = { ...measured, codec: { ...measured.codec, vote: 1e-3 } };
    const { computing } = predictVote("all-to-all", { n: 20_000, ranks: 4, chunk: 16_384 }, slow);
    expect(computing).toBeCloseTo(8 * Math.ceil((20_000 - 16_384) / 64) * 1e-3, 9);
  });

  it("has the overhead of an exchange once", () => {
    const busy = { ...measured, link: { ...measured.link, perExchange: 0.5 } };
    for (const scheme of predictedVotes)
      for (const n of [640, 4 * mebi]) {
        const [more, less] = [busy, measured].map((each) => predictVote(scheme, { n, ranks: 4 }, each).seconds);
        expect(more! - less!).toBeCloseTo(0.5, 9);
      }
  });

  it("has no delay for bytes in the token bucket of a shaped link, which is refilled during latencies", () => {
    // Parts of 4 × 32 KiB: each operation sends 96 KiB. In a latency of 2 s a link of 1 ms a byte refills 2000 bytes.
    const shaped = (burst: number, beta: number) => ({ ...measured, link: { ...measured.link, beta, burst } });
    const waiting = 2 * 2;
    const of = (burst: number, beta: number) =>
      predictVote("all-to-all", { n: mebi, ranks: 4 }, shaped(burst, beta)).seconds - waiting;
    const [each, beta] = [96 * kibi, 1e-3];
    // The first operation is free, the second has the refill.
    expect(of(each, beta)).toBeCloseTo(0.02 + (each - 2020) * beta, 6);
    expect(of(3 * each, beta)).toBeCloseTo(2 * 0.02, 9);
    expect(of(1000, beta)).toBeCloseTo((2 * each - 2000) * beta, 6); // the bucket holds no more than 1000
    // The root of a tree receives from two children. Each has a link of its own, and both share the root's incoming
    // link.
    const tree = predictVote("parameter-server-efficient", { n: mebi, ranks: 3 }, shaped(4000, beta)).seconds;
    const own = 8 * Math.ceil(mebi / 64 / 3);
    expect(tree).toBeCloseTo(2 + (256 * kibi - 4000) * beta + 2 * 2 + (4 * own - 4000 - 2000) * beta, 6);
    // The outgoing direction of the server's link has been idle until then, so its bucket is full.
    const server = predictVote("parameter-server", { n: mebi, ranks: 4 }, shaped(1000, beta)).seconds - waiting;
    expect(server).toBeCloseTo(2 * (3 * 128 * kibi - 1000) * beta, 6);
  });

  it("of a single rank costs nothing", () => {
    for (const scheme of predictedVotes) expect(predictVote(scheme, { n: mebi, ranks: 1 }, measured).seconds).toBe(0);
  });
});

describe("a mean", () => {
  it("of 4 ranks in f32 carries 2 · 3/4 of the vector in a ring, if its bytes take longer than its steps", () => {
    const fast = { ...measured, link: { ...measured.link, alpha: 1e-3, alphaLong: 2e-3 } };
    const { seconds } = predictMean("f32", { n: mebi, ranks: 4 }, fast);
    expect(seconds).toBeCloseTo(2e-3 + 6 * mebi * 1e-6, 9); // 4 MiB · 3/2
  });

  it("waits for 2 · 3 steps of a segment if latency dominates", () => {
    // 256 Ki floats are 1 MiB, a chunk 256 KiB, a segment 128 KiB: the first segment takes all steps, the other follows
    // the last step.
    const { seconds } = predictMean("f32", { n: 256 * kibi, ranks: 4 }, measured);
    expect(seconds).toBeCloseTo(6 * (1 + 128 * kibi * 1e-6) + 128 * kibi * 1e-6, 9);
    // No segment is longer than 256 KiB: with 4 MiB one takes all steps and three follow.
    const longer = predictMean("f32", { n: mebi, ranks: 4 }, measured).seconds;
    expect(longer).toBeCloseTo(6 * (1 + 256 * kibi * 1e-6) + 3 * 256 * kibi * 1e-6, 9);
  });

  it("has segments of at least 64 KiB", () => {
    const { seconds } = predictMean("f32", { n: 64 * kibi, ranks: 4 }, measured); // chunks of 64 KiB
    expect(seconds).toBeCloseTo(6 * (1 + 64 * kibi * 1e-6), 9);
  });

  it("sends its first bytes without delay on a shaped link", () => {
    const fast = { ...measured, link: { ...measured.link, alpha: 1e-3, alphaLong: 2e-3, burst: mebi } };
    const { seconds } = predictMean("f32", { n: mebi, ranks: 4 }, fast);
    expect(seconds).toBeCloseTo(2e-3 + 5 * mebi * 1e-6, 9);
  });

  it("of at most 8 KiB is a direct all-reduce", () => {
    const { seconds } = predictMean("f32", { n: 2 * kibi, ranks: 4 }, measured);
    expect(seconds).toBeCloseTo(1 + 3 * 8 * kibi * 1e-6, 9);
  });

  it("in f32 takes 32 times as long as a vote, for very long vectors", () => {
    for (const ranks of [2, 3, 8]) {
      const question = { n: 2 ** 44, ranks };
      const ratio =
        predictMean("f32", question, measured).seconds / predictVote("all-to-all", question, measured).seconds;
      expect(ratio).toBeCloseTo(32, 2);
    }
  });

  it("in 16 bits takes half as long as in f32, for very long vectors", () => {
    const question = { n: 2 ** 36, ranks: 4 };
    const ratio = predictMean("f32", question, measured).seconds / predictMean("bf16", question, measured).seconds;
    expect(ratio).toBeCloseTo(2, 3);
  });

  it("in int8 has an all-reduce of a unit for each 512 elements, then a byte an element to its owner, and two back", () => {
    // 2 Ki + 1 floats of units are more than 8 KiB: a ring with one segment a chunk.
    const units = 6 * (1 + (2 * kibi + 1) * 1e-6);
    const { seconds } = predictMean("int8", { n: mebi, ranks: 4 }, measured);
    expect(seconds).toBeCloseTo(units + 2 * 2 + 0.75 * (1 + 2) * mebi * 1e-6, 9);
    const slow = { ...measured, codec: { ...measured.codec, encodeInt8: 1e-6, sumInt8: 2e-6, decodeInt8: 4e-6 } };
    expect(predictMean("int8", { n: mebi, ranks: 4 }, slow).computing).toBeCloseTo(7e-6 * mebi, 9);
  });

  it("in int8 is possible for as many ranks as 16 bits can hold", () => {
    expect(predictMean("int8", { n: mebi, ranks: 257 }, measured).seconds).toBeGreaterThan(0);
    expect(() => predictMean("int8", { n: mebi, ranks: 258 }, measured)).toThrow(RangeError);
  });

  describe.each(["f32", "bf16", "f16", "int8"] as const)("in %s", (type) => {
    it.each([2, 3, 4])("carries as many bytes as the counters of %i ranks show", async (ranks) => {
      const n = 24 * 4096; // equal chunks for all owners, in whole blocks
      const groups = loopback(ranks);
      await Promise.all(groups.map((group) => meanIn(type, group, new Float32Array(n).fill(1))));
      const bytes = Math.max(...groups.map((group) => group.sent().bytes));
      const onlyBytes = { alpha: 0, alphaLong: 0, perMessage: 0, perExchange: 0, beta: 1, burst: 0 };
      expect(predictMean(type, { n, ranks }, { ...measured, link: onlyBytes }).wire).toBeCloseTo(bytes, 6);
      await Promise.all(groups.map((group) => group.close()));
    });
  });
});
