import { describe, expect, it } from "vitest";
import { allReduceBytes, allToAllBytes } from "./bytes.ts";
import { loopback } from "./engines/loopback.ts";
import type { Group } from "./group.ts";
import { linkText, parseLink } from "./link.ts";

describe("a link", () => {
  it.each([
    ["100mbit", { bitsPerSecond: 1e8, latency: 0 }],
    ["100mbit,1ms", { bitsPerSecond: 1e8, latency: 0.001 }],
    ["2.5gbit,50us", { bitsPerSecond: 2.5e9, latency: 50e-6 }],
    ["20Mbit,0.5s", { bitsPerSecond: 2e7, latency: 0.5 }],
    ["512kbit", { bitsPerSecond: 512e3, latency: 0 }],
    ["9600bit", { bitsPerSecond: 9600, latency: 0 }],
  ])("is read from %s", (text, want) => {
    const { bitsPerSecond, latency } = parseLink(text);
    expect(bitsPerSecond).toBeCloseTo(want.bitsPerSecond);
    expect(latency).toBeCloseTo(want.latency, 9);
  });

  it.each(["100mbit", "100mbit,1ms", "2.5gbit,50us", "20mbit,500ms", "512kbit,2s", "1bit,300us"])(
    "is written as it is read: %s",
    (text) => {
      expect(linkText(parseLink(text))).toBe(text);
    },
  );

  it("is a property of the groups that it slows down, and of groups split from them", async () => {
    const groups = loopback(2, { emulateLink: "100mbit,1ms" });
    const inner = await Promise.all(groups.map((group) => group.split(0)));
    for (const group of [...groups, ...inner])
      expect(group!.emulatedLink).toEqual({ bitsPerSecond: 1e8, latency: 0.001 });
    await Promise.all([...inner, ...groups].map((group) => group!.close()));
    const [fast] = loopback(1);
    expect(fast!.emulatedLink).toBeUndefined();
    await fast!.close();
  });

  it.each(["", "fast", "100", "100mbps", "100 mbit", "100mbit,1", "-1mbit", "100mbit,1ms,1ms", "1e3mbit"])(
    'is not read from "%s"',
    (text) => {
      expect(() => parseLink(text)).toThrow("a link is written like 100mbit or 100mbit,1ms");
    },
  );

  it("has a rate of 1 bit to a million gbit per second, and a latency of at most an hour", () => {
    expect(() => parseLink("0gbit")).toThrow(/^the rate of a link must be 1 bit to 1000000 gbit .* is 0 bit$/);
    expect(() => parseLink("1000001gbit")).toThrow("the rate of a link must be");
    expect(parseLink("1000000gbit").bitsPerSecond).toBe(1e15);
    expect(() => parseLink("1gbit,3601s")).toThrow("the latency of a link must be 0 to 3600 seconds");
    expect(() => loopback(2, { emulateLink: { bitsPerSecond: Number.NaN, latency: 0 } })).toThrow(RangeError);
  });
});

// Only lower bounds: an emulated link is never faster than its rate, and how much slower depends on the machine.
describe("an emulated link", () => {
  const bitsPerSecond = 100e6;
  const latency = 0.005;

  async function seconds(groups: readonly Group[], call: (group: Group) => Promise<unknown>): Promise<number> {
    await Promise.all(groups.map((group) => group.barrier()));
    const begin = performance.now();
    await Promise.all(groups.map(call));
    return (performance.now() - begin) / 1000;
  }
  async function withWorld(size: number, run: (groups: Group[]) => Promise<void>): Promise<void> {
    const groups = loopback(size, { emulateLink: { bitsPerSecond, latency } });
    await run(groups);
    await Promise.all(groups.map((group) => group.close()));
  }
  /** The seconds that a rank's link needs for a volume: payload and headers. */
  const onLink = ({ bytes, messages }: { bytes: number; messages: number }) =>
    (8 * (bytes + 32 * messages)) / bitsPerSecond;

  it.each([2, 3])("carries an all-reduce among %i ranks no faster than its rate", (n) =>
    withWorld(n, async (groups) => {
      const length = 200_003;
      const xs = groups.map(({ rank }) => new Float32Array(length).fill(rank + 1));
      const took = await seconds(groups, (group) => group.allReduce(xs[group.rank]!));
      // Every chunk takes 2 n − 2 steps around the ring.
      expect(took).toBeGreaterThanOrEqual(onLink(allReduceBytes(length, 4, n, 0)));
      expect(took).toBeGreaterThanOrEqual((2 * n - 2) * latency);
      for (const x of xs) expect(x.every((each) => each === (n * (n + 1)) / 2)).toBe(true);
    }),
  );

  it.each([2, 4])("carries an all-to-all among %i ranks no faster than its rate", (n) =>
    withWorld(n, async (groups) => {
      const length = 300_000;
      const parts = () => groups.map(() => new Uint8Array(length));
      const took = await seconds(groups, (group) => group.allToAll(parts(), parts()));
      expect(took).toBeGreaterThanOrEqual(
        onLink(
          allToAllBytes(
            groups.map(() => length),
            0,
          ),
        ) + latency,
      );
    }),
  );

  it("is shared by all messages that a rank sends, to several ranks and in several groups", () =>
    withWorld(3, async (groups) => {
      const inner = await Promise.all(groups.map((group) => group.split(0)));
      const length = 200_000;
      const took = await seconds(groups, async ({ rank }) => {
        if (rank !== 0) {
          const receives = [
            groups[rank]!.recv(new Uint8Array(length), 0),
            inner[rank]!.recv(new Uint8Array(length), 0),
          ];
          return Promise.all(receives);
        }
        return Promise.all(
          [1, 2].flatMap((to) => [
            groups[0]!.send(new Uint8Array(length), to),
            inner[0]!.send(new Uint8Array(length), to),
          ]),
        );
      });
      expect(took).toBeGreaterThanOrEqual(onLink({ bytes: 4 * length, messages: 4 }) + latency);
      await Promise.all(inner.map((group) => group!.close()));
    }));

  it("carries a message of one packet before those of other groups that have not left", () =>
    withWorld(2, async (groups) => {
      const inner = await Promise.all(groups.map((group) => group.split(0)));
      const [long, short] = [new Uint8Array(5_000_000), new Uint8Array(100)]; // the first takes 0.4 s
      const sent = [groups[0]!.send(long, 1), inner[0]!.send(short, 1)];
      const arrived: string[] = [];
      const received = [
        groups[1]!.recv(new Uint8Array(long.length), 0).then(() => arrived.push("long")),
        inner[1]!.recv(new Uint8Array(short.length), 0).then(() => arrived.push("short")),
      ];
      await Promise.all([...sent, ...received]);
      expect(arrived).toEqual(["short", "long"]);
      await Promise.all(inner.map((group) => group!.close()));
    }));

  it("is shared by all messages that a rank receives", () =>
    withWorld(5, async (groups) => {
      const length = 100_000;
      const parts = groups.map(() => new Uint8Array(length));
      const took = await seconds(groups, (group) => group.gather(new Uint8Array(length), 0, parts));
      expect(took).toBeGreaterThanOrEqual((8 * 4 * length) / bitsPerSecond + latency);
    }));

  it("stops at once when its group ends, and returns the memory", () =>
    withWorld(2, async (groups) => {
      const xs = groups.map(() => new Float32Array(64 << 20)); // 20 s
      const pending = groups.map((group, rank) => group.allReduce(xs[rank]!));
      groups[0]!.abort("enough");
      for (const outcome of await Promise.allSettled(pending))
        expect((outcome as PromiseRejectedResult).reason.message).toBe("rank 0 aborted the group: enough");
    }));

  it("causes a timeout when it is too slow for the deadline", async () => {
    const groups = loopback(2, { emulateLink: "8kbit", timeoutSeconds: 0.1 });
    const outcomes = await Promise.allSettled(groups.map((group) => group.allReduce(new Float32Array(100_000))));
    for (const outcome of outcomes)
      expect((outcome as PromiseRejectedResult).reason.message).toMatch(
        /did not take part in time|emulated link did not carry/,
      );
    for (const group of groups) await group.close();
  });
});
