import { describe, expect, it } from "vitest";
import { describeFailure, exitCodeOfFailure, firstFailure, isOfAllRanks } from "./first-failure.ts";
import type { Failure } from "./rank-process.ts";

const failure = (rank: number, how: Partial<Failure>): Failure => ({
  rank,
  host: `node-${rank}`,
  stopped: false,
  lastLines: [],
  ...how,
});
const error = (name: string, message: string) => ({ code: 1, error: { name, message } });
const lost = failure(0, error("RankLostError", "rank 1 is lost"));

describe("the first failure", () => {
  it("is the rank that a signal killed, and not the one that noticed first", () => {
    const killed = failure(1, { signal: "SIGKILL", lastLines: ["a", "b", "c", "d"], why: "memory was used up" });
    const frames = [
      "----- Native stack trace -----",
      "",
      " 1: 0xab8776  [/root/node]",
      "12: 0x7f1c2a [/lib/libc.so.6]",
    ];
    const aborted = failure(1, { signal: "SIGTRAP", lastLines: ["a", "# Fatal: out of memory", ...frames] });
    expect(describeFailure(aborted, [aborted], 2)).toMatch(/Its last output: a \| # Fatal: out of memory$/);
    const stopped = failure(2, { signal: "SIGTERM", stopped: true });
    const failures = [lost, stopped, killed];
    expect(firstFailure(failures)).toBe(killed);
    expect(exitCodeOfFailure(killed)).toBe(137);
    expect(describeFailure(killed, failures, 4)).toBe(
      "rank 1 on node-1 was ended by SIGKILL and all others were stopped: memory was used up. Its last output: b | c | d",
    );
  });

  it("is the rank with an error of its own, or else one that ended without a word", () => {
    const printed = { lastLines: ["a", "b", "c", "d"], log: "logs/attempt-0/rank-2.log" };
    const own = failure(2, { ...error("Error", "the disk is gone"), ...printed });
    expect(firstFailure([lost, own])).toBe(own);
    expect(describeFailure(own, [lost, own], 3)).toBe(
      "rank 2 on node-2: the disk is gone (it ended with code 1). Its log: logs/attempt-0/rank-2.log. Its last output: b | c | d",
    );
    const silent = failure(1, { code: 7 });
    expect(firstFailure([lost, silent])).toBe(silent);
    expect(exitCodeOfFailure(silent)).toBe(7);
    expect(describeFailure(silent, [lost, silent], 2)).toBe(
      "rank 1 on node-1 ended with code 7 and all others were stopped.",
    );
  });

  it("is the earliest of its kind, by the times that launchers tell, and else the one on the first machine", () => {
    const at = (rank: number, time?: number) =>
      failure(rank, { ...error("Error", `of ${rank}`), ...(time !== undefined && { time }) });
    const [late, early] = [at(0, 2000), at(3, 1000)];
    const killed = failure(1, { signal: "SIGKILL", time: 3000 });
    expect(firstFailure([late, early])).toBe(early);
    expect(firstFailure([late, early, killed])).toBe(killed);
    const first = at(0);
    expect(firstFailure([first, early])).toBe(first);
  });

  it("is no rank's own where all report it, and comes again; a broken connection does not", () => {
    const all = (name: string) => [0, 1].map((rank) => failure(rank, error(name, "the same")));
    const wrong = all("OptionsError");
    expect(isOfAllRanks(wrong[0]!, wrong, 2)).toBe(true);
    expect(describeFailure(wrong[0]!, wrong, 2)).toBe("the same");
    expect(isOfAllRanks(wrong[0]!, wrong, 3)).toBe(false);
    const broken = all("CollectiveError");
    expect(isOfAllRanks(broken[0]!, broken, 2)).toBe(false);
  });
});
