/** How a group ends: by close, by abort, or by a close on one rank while the others go on. */
import { expect, it } from "vitest";
import { CollectiveError } from "../../errors.ts";
import type { EngineUnderTest } from "./world.ts";

export function closingAndAborting(engine: EngineUnderTest, n: number): void {
  it("ends on every rank when one aborts", () =>
    engine.withWorld(n, async (groups) => {
      const waiting = groups.slice(1).map((group) => group.allReduce(new Float32Array(100_000)));
      groups[0]!.abort("the loss is NaN");
      const outcomes = await Promise.allSettled([
        ...waiting,
        groups[0]!.barrier(),
        ...groups.slice(1).map((group) => group.barrier()),
      ]);
      for (const outcome of outcomes) {
        expect(outcome.status).toBe("rejected");
        const error = (outcome as PromiseRejectedResult).reason;
        expect(error).toBeInstanceOf(CollectiveError);
        expect(error.message).toBe("rank 0 aborted the group: the loss is NaN");
      }
    }));

  it("refuses operations after close", () =>
    engine.withWorld(n, async (groups) => {
      await Promise.all(groups.map((group) => group.close()));
      await expect(groups[0]!.barrier()).rejects.toThrow("the group is closed");
      await groups[0]!.close();
    }));
}

/** For engines whose messages have headers. */
export function closingTooEarly(engine: EngineUnderTest, n: number): void {
  it("ends when a rank has closed it and the others split it", () =>
    engine.withWorld(n, async (groups) => {
      const leaving = groups[0]!.close();
      const errors = await Promise.all(groups.slice(1).map((group) => group.split(0).catch((each: unknown) => each)));
      for (const error of errors) {
        expect(error).toBeInstanceOf(CollectiveError);
        expect((error as Error).message).toMatch(
          /^rank 0 closed the group without the split that rank \d has called; every rank must call the same operations/,
        );
      }
      await leaving;
    }));

  it("ends when a rank has closed it and the others call an operation", () =>
    engine.withWorld(n, async (groups) => {
      const leaving = groups[0]!.barrier().then(() => groups[0]!.close());
      const errors = await Promise.all(
        groups.slice(1).map(async (group) => {
          try {
            await group.barrier();
            await group.allReduce(new Float32Array(100_000));
          } catch (error) {
            return error as Error;
          }
          return undefined;
        }),
      );
      for (const error of errors)
        expect(error?.message).toMatch(
          /^rank 0 closed the group after 1 collectives, and rank \d has called 2; every rank must call the same operations/,
        );
      await leaving;
    }));
}
