import { type BufferLike, type Group, loopback, type Reduction } from "@terse/collectives";
import { afterEach, describe, expect, it, vi } from "vitest";
import { measureLink, secondsPerByte } from "./measure-link.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** A network whose clock advances only when a collective is called. */
function network({
  size = 4,
  alpha = 1e-3,
  room = 0,
  perMessage = 1e-4,
  perExchange = 0,
  beta = 8e-8,
  burst = 0,
  late = 0, // the delay of every seventh all-to-all
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
      const paid = bytes > 8192 ? Math.max(0, bytes - burst) : 0; // parts of a byte are left out
      clock += ++calls % 7 === 0 ? late : 0;
      clock += alpha + (bytes > 8192 ? room : 0) + Math.max((size - 2) * perMessage, paid * beta);
      return [];
    },
    allGather: async () => {
      clock += alpha + (size - 2) * perMessage + perExchange; // a vote ends with it
    },
    // The times are those of the slowest rank.
    allReduce: async (_: BufferLike, op: Reduction) => expect(op).toBe("max"),
  } as unknown as Group;
}

describe("α and β of a network", () => {
  it("are the costs of a message and of a byte", async () => {
    const { link } = await measureLink(network({ room: 5e-4 }));
    expect(link.alpha).toBeCloseTo(1e-3, 9);
    expect(link.alphaLong).toBeCloseTo(1.5e-3, 9);
    expect(link.perMessage).toBeCloseTo(1e-4, 9);
    expect(link.beta).toBeCloseTo(8e-8, 15);
  });

  it("leave out the bytes of a message that are sent while other messages start", async () => {
    // Two further messages take 2 ms, 16 KiB take 1.3 ms.
    const { link } = await measureLink(network({ room: 5e-4, perMessage: 1e-3 }));
    expect(link.alphaLong).toBeCloseTo(1.5e-3, 9);
    expect(link.burst).toBe(0);
  });

  it.each([1e6, 20e6, 1e9, 50e9])("are correct at %d bit/s", async (rate) => {
    const { link } = await measureLink(network({ beta: 8 / rate }));
    expect(link.beta * rate).toBeCloseTo(8, 6);
    expect(link.alpha).toBeCloseTo(1e-3, 9);
  });

  it("are not distorted by a disturbed transfer of middle length", () => {
    const transfer = (bytes: number, disturbed = 0, free = 0) => ({
      bytes,
      seconds: 1e-3 + 8e-8 * (bytes - free) + disturbed,
    });
    const secondsPer100MB = (disturbed: number, free: number) =>
      1e8 *
      secondsPerByte(
        transfer(16_384, 0, Math.min(free, 16_384)),
        transfer(65_536, disturbed, free),
        transfer(131_072, 0, free),
      );
    expect(secondsPer100MB(0, 0)).toBeCloseTo(8, 9);
    expect(secondsPer100MB(2e-3, 0)).toBeCloseTo(8, 9);
    expect(secondsPer100MB(0, 30_000)).toBeCloseTo(8, 9); // a token bucket
    expect(secondsPer100MB(2e-3, 30_000)).toBeGreaterThan(7);
  });

  it("leave out bytes that a token bucket lets through without delay", async () => {
    const { link } = await measureLink(network({ beta: 8 / 20e6, burst: 40_000 }));
    expect(link.beta * 20e6).toBeCloseTo(8, 6);
    // 16 KiB take no time for their bytes, but alphaLong is at least α.
    expect(link.alphaLong).toBeCloseTo(link.alpha, 12);
    expect(link.burst).toBeCloseTo(40_000, 3);
    expect((await measureLink(network({ beta: 8 / 20e6 }))).link.burst).toBe(0);
  });

  it("are not distorted by occasional delays", async () => {
    const { link } = await measureLink(network({ late: 0.02, burst: 40_000 }));
    expect(link.alpha).toBeCloseTo(1e-3, 9);
    expect(link.alphaLong).toBeCloseTo(1e-3, 9);
    expect(link.perMessage).toBeCloseTo(1e-4, 9);
    expect(link.beta).toBeCloseTo(8e-8, 15);
    expect(link.burst).toBeCloseTo(40_000, 3);
  });

  it("include the overhead of an exchange", async () => {
    const { link } = await measureLink(network({ perExchange: 2e-4 }));
    expect(link.perExchange).toBeCloseTo(2e-4, 9);
  });

  it("are measured in less than a second of network time, and in 2 s at 1 Mbit/s", async () => {
    for (const rate of [1e6, 20e6, 100e6, 1e9, 1e11]) {
      await measureLink(network({ beta: 8 / rate }));
      expect(performance.now()).toBeLessThan(rate > 1e6 ? 1000 : 2000);
    }
  });

  it("have no cost of a further message between two ranks", async () => {
    const { link } = await measureLink(network({ size: 2 }));
    expect(link.perMessage).toBe(0);
    expect(link.alpha).toBeCloseTo(1e-3, 9);
  });
});

describe("on a group", () => {
  it.each([1, 2, 3, 5])("%i ranks have the same measurements, bit for bit", async (size) => {
    const groups = loopback(size);
    const measured = await Promise.all(groups.map(measureLink));
    for (const each of measured) expect(each).toEqual(measured[0]);
    const { link, codec } = measured[0]!;
    for (const value of [...Object.values(link), ...Object.values(codec)]) expect(value).toBeGreaterThanOrEqual(0);
    if (size > 1) for (const value of [link.alpha, link.alphaLong, link.beta]) expect(value).toBeGreaterThan(0);
    await Promise.all(groups.map((group) => group.close()));
  });

  it("a message takes at least the latency of the link", async () => {
    const groups = loopback(2, { emulateLink: "100mbit,2ms" });
    const [{ link }] = (await Promise.all(groups.map(measureLink))) as [Awaited<ReturnType<typeof measureLink>>];
    expect(link.alpha).toBeGreaterThanOrEqual(2e-3);
    expect(link.alphaLong).toBeGreaterThanOrEqual(link.alpha);
    await Promise.all(groups.map((group) => group.close()));
  });
});
