import { type BufferLike, type Group, loopback, type Reduction } from "@terse/collectives";
import { afterEach, describe, expect, it, vi } from "vitest";
import { measureLink, secondsPerByte } from "./measure-link.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** A network whose clock moves only when something is sent over it. */
function network({
  size = 4,
  alpha = 1e-3,
  room = 0,
  perMessage = 1e-4,
  perExchange = 0,
  beta = 8e-8,
  burst = 0,
  late = 0, // every seventh time
}): Group {
  let clock = 0;
  let calls = 0;
  vi.spyOn(performance, "now").mockImplementation(() => 1000 * clock);
  const bytesOf = (parts: readonly BufferLike[]) => parts.reduce((sum, { length }) => sum + length, 0);
  return {
    rank: 0,
    size,
    barrier: async () => {
      clock += Math.ceil(Math.log2(size)) * alpha;
    },
    allToAll: async (outgoing: readonly BufferLike[]) => {
      const bytes = bytesOf(outgoing);
      const paid = bytes > 8192 ? Math.max(0, bytes - burst) : 0; // a byte a part is not worth counting
      clock += ++calls % 7 === 0 ? late : 0;
      clock += alpha + (bytes > 8192 ? room : 0) + Math.max((size - 2) * perMessage, paid * beta);
      return [];
    },
    allGather: async () => {
      clock += alpha + (size - 2) * perMessage + perExchange; // of a vote, which ends with it
    },
    allReduce: async (_: BufferLike, op: Reduction) => expect(op).toBe("max"), // the slowest rank's times count
  } as unknown as Group;
}

describe("α and β of a network", () => {
  it("are what messages and bytes cost", async () => {
    const { link } = await measureLink(network({ room: 5e-4 }));
    expect(link.alpha).toBeCloseTo(1e-3, 9);
    expect(link.alphaLong).toBeCloseTo(1.5e-3, 9);
    expect(link.perMessage).toBeCloseTo(1e-4, 9);
    expect(link.beta).toBeCloseTo(8e-8, 15);
  });

  it("do not see the bytes of a message that go while others are made", async () => {
    const { link } = await measureLink(network({ room: 5e-4, perMessage: 1e-3 })); // 2 ms for two; 16 KiB take 1.3 ms
    expect(link.alphaLong).toBeCloseTo(1.5e-3, 9);
    expect(link.burst).toBe(0);
  });

  it.each([1e6, 20e6, 1e9, 50e9])("are right at %d bit/s", async (rate) => {
    const { link } = await measureLink(network({ beta: 8 / rate }));
    expect(link.beta * rate).toBeCloseTo(8, 6);
    expect(link.alpha).toBeCloseTo(1e-3, 9);
  });

  it("do not take a middle transfer that was disturbed for a faster link", () => {
    const transfer = (bytes: number, disturbed = 0, free = 0) => ({
      bytes,
      seconds: 1e-3 + 8e-8 * (bytes - free) + disturbed,
    });
    const rate = (disturbed: number, free: number) =>
      1e8 *
      secondsPerByte(
        transfer(16_384, 0, Math.min(free, 16_384)),
        transfer(65_536, disturbed, free),
        transfer(131_072, 0, free),
      );
    expect(rate(0, 0)).toBeCloseTo(8, 9);
    expect(rate(2e-3, 0)).toBeCloseTo(8, 9);
    expect(rate(0, 30_000)).toBeCloseTo(8, 9); // a token bucket's
    expect(rate(2e-3, 30_000)).toBeGreaterThan(7);
  });

  it("do not count what a token bucket lets through at once", async () => {
    const { link } = await measureLink(network({ beta: 8 / 20e6, burst: 40_000 }));
    expect(link.beta * 20e6).toBeCloseTo(8, 6);
    expect(link.alphaLong).toBeCloseTo(link.alpha, 12); // 16 KiB took less than their bytes do: no reason to call it less than α
    expect(link.burst).toBeCloseTo(40_000, 3);
    expect((await measureLink(network({ beta: 8 / 20e6 }))).link.burst).toBe(0);
  });

  it("do not count what comes late now and then", async () => {
    const { link } = await measureLink(network({ late: 0.02, burst: 40_000 }));
    expect(link.alpha).toBeCloseTo(1e-3, 9);
    expect(link.alphaLong).toBeCloseTo(1e-3, 9);
    expect(link.perMessage).toBeCloseTo(1e-4, 9);
    expect(link.beta).toBeCloseTo(8e-8, 15);
    expect(link.burst).toBeCloseTo(40_000, 3);
  });

  it("tell what an exchange takes beyond its messages", async () => {
    const { link } = await measureLink(network({ perExchange: 2e-4 }));
    expect(link.perExchange).toBeCloseTo(2e-4, 9);
  });

  it("are measured in less than a second of the network's time, and in 2 s at 1 Mbit/s", async () => {
    for (const rate of [1e6, 20e6, 100e6, 1e9, 1e11]) {
      await measureLink(network({ beta: 8 / rate }));
      expect(performance.now()).toBeLessThan(rate > 1e6 ? 1000 : 2000);
    }
  });

  it("between two ranks have no second message to tell the cost of", async () => {
    const { link } = await measureLink(network({ size: 2 }));
    expect(link.perMessage).toBe(0);
    expect(link.alpha).toBeCloseTo(1e-3, 9);
  });
});

describe("on a group", () => {
  it.each([1, 2, 3, 5])("all of %i ranks have the same numbers, bit for bit", async (size) => {
    const groups = loopback(size);
    const measured = await Promise.all(groups.map(measureLink));
    for (const each of measured) expect(each).toEqual(measured[0]);
    const { link, codec } = measured[0]!;
    for (const value of [...Object.values(link), ...Object.values(codec)]) expect(value).toBeGreaterThanOrEqual(0);
    if (size > 1) for (const value of [link.alpha, link.alphaLong, link.beta]) expect(value).toBeGreaterThan(0);
    await Promise.all(groups.map((group) => group.close()));
  });

  it("a message takes at least as long as the link's latency and bytes say", async () => {
    const groups = loopback(2, { emulateLink: "100mbit,2ms" });
    const [{ link }] = (await Promise.all(groups.map(measureLink))) as [Awaited<ReturnType<typeof measureLink>>];
    expect(link.alpha).toBeGreaterThanOrEqual(2e-3);
    expect(link.alphaLong).toBeGreaterThanOrEqual(link.alpha);
    await Promise.all(groups.map((group) => group.close()));
  });
});
