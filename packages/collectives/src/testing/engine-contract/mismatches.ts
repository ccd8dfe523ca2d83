/** Ranks that call operations which do not match, on engines whose messages have headers. */
import { describe, expect, it } from "vitest";
import { CollectiveError } from "../../errors.ts";
import type { Group } from "../../group.ts";
import { type EngineUnderTest, everywhere } from "./world.ts";

export function mismatches(engine: EngineUnderTest, n: number): void {
  /** Runs calls that do not match, then barriers. Every rank must fail with the same sentence. */
  async function disagree(call: (group: Group, rank: number) => Promise<unknown>, sentence: RegExp): Promise<void> {
    await engine.withWorld(n, async (groups) => {
      const errors = await everywhere(groups, async (group, rank) => {
        try {
          await call(group, rank);
          await group.barrier();
        } catch (error) {
          await expect(group.barrier()).rejects.toBe(error); // and stays so
          return error as Error;
        }
        throw new Error(`rank ${rank} did not notice`);
      });
      for (const error of errors) {
        expect(error).toBeInstanceOf(CollectiveError);
        expect(error.message).toBe(errors[0]!.message);
        expect(error.message).toMatch(sentence);
      }
    });
  }

  it.each([
    ["few", 10, 11],
    ["many", 500_000, 400_000],
    ["few and many", 10, 400_000],
    ["none and some", 0, 7],
  ])("fail together over sizes, naming ranks and sizes: %s", (_, others, rank1) =>
    disagree(
      (group, rank) => group.allReduce(new Float32Array(rank === 1 ? rank1 : others)),
      new RegExp(
        `all-reduce number 1 failed on rank \\d: rank \\d has (${others}|${rank1}) f32 where rank \\d has (${others}|${rank1}) f32`,
      ),
    ),
  );

  it("fail together over types", () =>
    disagree(
      (group, rank) => group.allReduce(rank === 0 ? new Float64Array(5) : new Float32Array(5)),
      /rank \d has 5 f(32|64) where rank \d has 5 f(64|32)/,
    ));

  it("fail together over the reduction", () =>
    disagree(
      (group, rank) => group.allReduce(new Float32Array(5), rank === 0 ? "max" : "sum"),
      /calls (max|sum) and rank \d calls (sum|max)/,
    ));

  it("fail together over different operations", () =>
    disagree(
      (group, rank) =>
        rank === 0
          ? group.allReduce(new Float32Array(70_000))
          : group.allGather(Array.from({ length: n }, () => new Float32Array(70_000))),
      /every rank must call the same operations in the same order/,
    ));

  it("fail together over the lengths of the parts", () =>
    disagree(
      (group, rank) =>
        group.reduceScatter(
          Array.from(
            { length: n },
            (_, r) => new Float32Array(rank === 0 ? 100_000 : 100_000 + (r === 0 ? 1 : r === 1 ? -1 : 0)),
          ),
        ),
      /have parts of different lengths; every rank must give the same lengths$/,
    ));

  it("fail together over the lengths of all-to-all", () =>
    disagree(
      (group, rank) =>
        group.allToAll(
          Array.from({ length: n }, () => new Float32Array(3)),
          Array.from({ length: n }, (_, r) => new Float32Array(rank === 1 && r === 0 ? 4 : 3)),
        ),
      /all-to-all number 1 failed on rank 1: rank 0 has 3 f32 where rank 1 has 4 f32/,
    ));

  const views: [string, (rank: number) => number][] = [
    ["one rank has another root", (rank) => (rank === 0 ? 0 : 1)],
    ["every rank names the next rank", (rank) => (rank + 1) % n],
    ["every rank names itself", (rank) => rank],
  ];
  describe.each(views)("over roots: %s", (_, rootOf) => {
    const sentence = (call: string) =>
      new RegExp(
        `^${call} number 1 failed on rank \\d: the root of this ${call} is rank \\d on rank \\d and rank \\d on rank \\d; every rank must name the same root$`,
      );
    it.each([3, 100_000])("fail together over the roots of %i elements", async (length) => {
      const x = () => new Float32Array(length);
      const parts = () => Array.from({ length: n }, x);
      await disagree((group, rank) => group.broadcast(x(), rootOf(rank)), sentence("broadcast"));
      await disagree((group, rank) => group.gather(x(), rootOf(rank), parts()), sentence("gather"));
      await disagree((group, rank) => group.scatter(x(), rootOf(rank), parts()), sentence("scatter"));
    });
  });

  it("fail together over the lengths of a gather or a scatter", async () => {
    const parts = (odd: number) => Array.from({ length: n }, (_, r) => new Float32Array(r === 1 ? odd : 3));
    const counts = /rank [01] has [34] f32 where rank [01] has [34] f32/;
    await disagree((group) => group.gather(new Float32Array(3), 0, parts(4)), counts);
    await disagree((group) => group.scatter(new Float32Array(3), 0, parts(4)), counts);
  });

  it("fail together over the sizes of a send and its receive", () =>
    disagree(async (group, rank) => {
      if (rank === 0) await group.send(new Float32Array(50_000), 1);
      if (rank === 1) await group.recv(new Float32Array(60_000), 0);
    }, /receive number 1 failed on rank 1: rank 0 sends 50000 f32 where rank 1 receives 60000 f32/));
}
