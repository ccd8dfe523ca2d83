import { spawnSync } from "node:child_process";
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

it("tells of a rank that could not be started, for want of file descriptors", () => {
  const program = `
    const { RankProcess } = await import(${JSON.stringify(new URL("rank-process.ts", import.meta.url).href)});
    const { openSync } = await import("node:fs");
    try { for (;;) openSync("/dev/null"); } catch {}
    const failure = await new RankProcess({ rank: 3, argv: [], env: {}, logs: undefined, heard() {} }).ended;
    console.log(failure.error.message);`;
  const node = [process.execPath, "--conditions=@terse/source", "--input-type=module", "--eval", program];
  const { stdout, stderr } = spawnSync("sh", ["-c", 'ulimit -n 256 && exec "$@"', "sh", ...node], { encoding: "utf8" });
  expect(stdout, stderr).toMatch(
    /^rank 3 could not be started: a process could not be started: too many files are open; .* \(ulimit -n\)\n$/,
  );
});
