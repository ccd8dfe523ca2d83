import { expect, it } from "vitest";
import { describeFailure } from "./first-failure.ts";
import { RankProcess } from "./rank-process.ts";

it("tells of a rank's own error when and how it ended", async () => {
  const began = Date.now();

  const argv = ["train", "--stepz=3"];
  const failure = (await new RankProcess({ rank: 1, argv, env: process.env, logs: undefined, heard() {} }).ended)!;
  expect(failure).toMatchObject({ rank: 1, code: 1, stopped: false, error: { name: "OptionsError" } });
  expect(failure.time).toBeGreaterThanOrEqual(began);
  expect(failure.time).toBeLessThanOrEqual(Date.now());
  expect(describeFailure(failure, [failure], 2)).toMatch(
    /^rank 1 on \S+: --stepz: unknown flag.* \(it ended with code 1\)\./,
  );
});
