import { describe, expect, it } from "vitest";
import { anyCodec, compressed, lionCub, sgd } from "../index.ts";
import { savesOf } from "../testing/stored.ts";
import { type GradientOf, trainLocally, wandering } from "../testing/train-locally.ts";

const nesterov = { algorithm: sgd({ momentum: 0.9, nesterov: true }), compareEvery: 1 };

describe("the ranks of a host that step together", () => {
  const codec = compressed(sgd({ momentum: 0.9, nesterov: true }), anyCodec({ codec: "scaled-sign" }));
  const options = { syncEvery: 4, fragments: 2, delay: 1, alpha: 0.5, rebase: true };
  const given = { ...options, outer: { algorithm: codec }, outerLr: 0.7 };
  const run = { steps: 16, sizes: [70, 9, 33] };
  const hosts = [0, 0, 1, 1];

  it("go as one rank with the mean of their gradients", async () => {
    const inner = { algorithm: sgd({ momentum: 0.5 }) };
    const plain = { syncEvery: 4, fragments: 2, delay: 1, inner, outer: nesterov, outerLr: 0.7 };
    const mean: GradientOf = (at) => {
      const [a, b] = [0, 1].map((place) => wandering({ ...at, rank: 2 * at.rank + place })) as [number, number];
      return Math.fround(Math.fround(Math.fround(a) + Math.fround(b)) / 2);
    };
    const ranks = await trainLocally(4, plain, wandering, { ...run, hosts });
    const alone = await trainLocally(2, plain, mean, run);
    for (const [rank, { seen }] of ranks.entries())
      for (const [step, { own, shared }] of seen.entries())
        for (const [layer, values] of own.entries())
          for (const [i, value] of values.entries()) {
            const other = alone[hosts[rank]!]!.seen[step]!;
            expect(value, `step ${step}, rank ${rank}`).toBeCloseTo(other.own[layer]![i]!, 5);
            expect(shared[layer]![i]).toBeCloseTo(other.shared[layer]![i]!, 5);
          }
  });

  it("send what the closed form says, between hosts from the first of them alone", async () => {
    const outer = { algorithm: codec, compareEvery: 0 };
    const inner = { algorithm: lionCub(), compareEvery: 0 };
    const bounds = { ...given, inner, outer };
    for (const hosts of [
      [0, 0, 1, 1],
      [0, 0, 0, 1],
      [0, 1, 2],
      [0, 0, 0],
    ]) {
      const ranks = await trainLocally(hosts.length, bounds, wandering, { ...run, hosts, looks: () => false });
      for (const [rank, { seen }] of ranks.entries())
        for (const [step, { bytes, ofRound = 0, closed }] of seen.entries()) {
          expect(bytes - ofRound, "in the step on the host").toBe(seen[0]!.bytes); // where no round is used
          expect(bytes - closed, `hosts ${hosts}, rank ${rank}, step ${step}`).toBeGreaterThanOrEqual(0);
          expect((bytes - closed) % 32, "headers").toBe(0);
        }
      for (const [rank, { seen }] of ranks.entries())
        expect(seen.at(-1)!.own).toEqual(ranks[hosts.indexOf(hosts[rank]!)]!.seen.at(-1)!.own);
    }
  });

  it("show a watch the messages of a host and of rounds, and the votes of rounds alone", async () => {
    const seen = hosts.map((): string[] => []);
    const watch = (rank: number) => ({
      bucket: () => ({
        wantsVotes: true,
        saw: (part: string) => void seen[rank]!.push(part),
        votes: () => void seen[rank]!.push("votes"),
      }),
    });
    const voting = { inner: { algorithm: lionCub() }, outer: { algorithm: lionCub() } };
    await trainLocally(4, { syncEvery: 3, ...voting }, wandering, { ...run, steps: 6, hosts, watch });
    for (const [rank, parts] of seen.entries()) {
      const isFirst = hosts.indexOf(hosts[rank]!) === rank;
      expect(parts.filter((part) => part === "votes")).toHaveLength(isFirst ? 2 : 0);
      expect(parts.filter((part) => part === "wire").length).toBeGreaterThan(4);
    }
  });

  it("go on with the same bits from a save after any step", async () => {
    const whole = await trainLocally(4, given, wandering, { ...run, hosts });
    for (const at of [2, 5, 7, 8]) {
      const begun = await trainLocally(4, given, wandering, { ...run, hosts, steps: at });
      const saves = (rank: number) => savesOf(rank, 4, begun[rank]!.save);
      const { shared } = begun[0]!.seen.at(-1)!;
      const resumed = await trainLocally(4, given, wandering, { ...run, hosts, from: { at, saves, shared } });
      for (const [rank, { seen }] of resumed.entries())
        expect(seen, `after step ${at}, rank ${rank}`).toEqual(whole[rank]!.seen.slice(at));
    }
  });

  it("go on as ranks alone or on other hosts, and ranks alone as hosts, from the mean of what they had", async () => {
    for (const [before, after] of [
      [hosts, undefined],
      [undefined, hosts],
      [hosts, [0, 1, 2, 3]],
      [hosts, [0, 0, 0, 0]],
    ] as const) {
      const begun = await trainLocally(4, given, wandering, { ...run, steps: 7, ...(before && { hosts: before }) });
      const saves = begun.map(({ save }) => save);
      const { shared } = begun[0]!.seen.at(-1)!;
      const from = { at: 7, saves: () => saves, shared };
      const resumed = await trainLocally(4, given, wandering, {
        ...run,
        steps: 7,
        from,
        ...(after && { hosts: after }),
      });
      const carriers = (of: readonly number[] | undefined) =>
        saves.filter((_, rank) => !of || of.indexOf(of[rank]!) === rank);
      const name = "island.layers.0.weight";
      const all = carriers(before).map(({ tensors }) => tensors.get(name) as Float32Array);
      for (const { save } of resumed)
        for (const [i, value] of (save.tensors.get(name) as Float32Array).entries())
          expect(value).toBeCloseTo(all.reduce((sum, each) => sum + each[i]!, 0) / all.length, 6);
      for (const { save } of resumed) expect(save.scalars["local.rounds"]).toEqual(saves[0]!.scalars["local.rounds"]);
    }
  });

  it("refuse a save of other hosts where a rank has only its own", async () => {
    const { save } = (await trainLocally(4, given, wandering, { ...run, hosts, steps: 4 }))[0]!;
    const from = { at: 4, saves: (rank: number) => savesOf(rank, 4, save), shared: [] };
    await expect(trainLocally(4, given, wandering, { ...run, hosts: [0, 1, 1, 1], from })).rejects.toThrow(
      /was one of the 2 of host 0, of 2, and now .* start as many ranks on each host as before, or say in local\.ranks/,
    );
  });

  it.each([
    { hosts: [0, 0, 1, 1], rank: 3 },
    { hosts: [0, 0, 1], rank: 2 }, // a host with one rank
    { hosts: [0, 1, 1], rank: 0 },
  ])("refuse a step together, and all hosts the round: $hosts, rank $rank", async ({ hosts, rank }) => {
    const broken: GradientOf = (at) => (at.rank === rank && at.step === 5 ? Number.NaN : wandering(at));
    const bounds = { syncEvery: 4, delay: 1 };
    const ranks = await trainLocally(hosts.length, bounds, broken, { steps: 12, hosts, looks: () => false });
    const sound = await trainLocally(hosts.length, bounds, wandering, { steps: 4, hosts });
    for (const { seen, refused } of ranks) {
      expect(seen).toHaveLength(7);
      expect(refused!.error.message).toMatch(/^the step is refused: the gradient is not finite/);
      expect(refused!.shared).toEqual(sound[0]!.seen.at(-1)!.shared);
    }
  });
});
