import { loopback } from "@terse/collectives";
import { expect, it } from "vitest";
import { Interruption } from "./interruption.ts";

it.each([0, 100_000])("ends a run that begins at step %i before its second step after a signal", async (first) => {
  const [group] = loopback(1);
  using interruption = new Interruption(group!, first, () => {});
  expect(await interruption.before(first)).toBeUndefined();
  process.emit("SIGHUP", "SIGHUP");
  expect(await interruption.before(first + 1)).toBe("SIGHUP");
});
