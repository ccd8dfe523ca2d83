import { setTimeout as sleep } from "node:timers/promises";
import { loopback } from "@terse/collectives";
import { expect, it } from "vitest";
import { Interruption, onSignals } from "./interruption.ts";

it.each([0, 100_000])("ends a run that begins at step %i before its second step after a signal", async (first) => {
  const [group] = loopback(1);
  using interruption = new Interruption(group!, first, () => {});
  expect(await interruption.before(first)).toBeUndefined();
  process.emit("SIGHUP", "SIGHUP");
  expect(await interruption.before(first + 1)).toBe("SIGHUP");
});

it("ends ranks that do not meet before the same step, and lets one be ahead of the other", async () => {
  const groups = loopback(2);
  const steps = [0, 0];
  let ahead = 0;
  const reasons = groups.map(async (group) => {
    using interruption = new Interruption(group, 0, () => {});
    for (; ; steps[group.rank]!++) {
      const reason = await interruption.between(steps[group.rank]!, 0.05);
      if (reason) return reason;
      await sleep(group.rank === 0 ? 1 : 3);
      ahead = Math.max(ahead, steps[0]! - steps[1]!);
      if (group.rank === 1 && steps[1] === 30) process.emit("SIGTERM", "SIGTERM");
    }
  });
  expect(await Promise.all(reasons)).toEqual(["SIGTERM", "SIGTERM"]);
  expect(steps[0]).toBe(steps[1]);
  expect(ahead).toBeGreaterThan(3);
  await Promise.all(groups.map((group) => group.close()));
});

it("hears signals that come together once, and a later one again", async () => {
  const heard: string[] = [];
  using _ = onSignals((signal) => heard.push(signal));
  for (const signal of ["SIGTERM", "SIGHUP", "SIGHUP"] as const) process.emit(signal, signal);
  expect(heard).toEqual(["SIGTERM"]);
  await sleep(300);
  process.emit("SIGINT", "SIGINT");
  expect(heard).toEqual(["SIGTERM", "SIGINT"]);
});
