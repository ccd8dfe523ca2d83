import { loopback } from "@terse/collectives";
import { StepRefusedError } from "@terse/exchange";
import { RanksDifferError } from "@terse/optimizers";
import { expect, it } from "vitest";
import { agreed, endOthers } from "./end-others.ts";
import { onEveryRank } from "./saves/on-every-rank.ts";

it("aborts the group with the reason of a rank that fails alone", async () => {
  const [mine, other] = loopback(2) as [ReturnType<typeof loopback>[0], ReturnType<typeof loopback>[0]];
  const waiting = other.allReduce(new Float32Array(1)).catch((error: Error) => error.message);
  const error = new SuppressedError(new Error("not closed"), new Error("a picture is damaged"));
  await endOthers(mine, error);
  expect(await waiting).toBe("rank 0 aborted the group: a picture is damaged");
});

it.each([
  ["one that a refused step throws", () => new StepRefusedError(undefined, "the mean gradient is not finite")],
  ["one of ranks that differ", () => new RanksDifferError("rank 1 differs from rank 0")],
  ["one that is marked", () => agreed(new Error("the recipes differ"))],
])("leaves the group alone after an error that every rank throws: %s", async (_, error) => {
  const groups = loopback(2);
  await endOthers(groups[0]!, error());
  await Promise.all(groups.map((group) => group.allReduce(new Float32Array(1))));
  await Promise.all(groups.map((group) => group.close()));
});

it("knows that work which fails between ranks fails on all of them", async () => {
  const groups = loopback(2);
  const both = await Promise.all(
    groups.map((group) =>
      onEveryRank(group, () => {
        if (group.rank === 1) throw new Error("the disk is full");
      }).catch((error: Error) => error),
    ),
  );
  for (const [rank, error] of both.entries()) {
    expect((error as Error).message).toBe("the disk is full");
    await endOthers(groups[rank]!, error);
  }
  await Promise.all(groups.map((group) => group.allReduce(new Float32Array(1))));
  await Promise.all(groups.map((group) => group.close()));
});
