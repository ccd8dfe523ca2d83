import type { Group } from "@terse/collectives";
import { expect, it } from "vitest";
import { Interruption } from "./interruption.ts";

it("stops a run that was resumed at a late step soon after the signal", async () => {
  using interruption = new Interruption({ size: 1 } as Group, () => {});
  expect(await interruption.before(1_000_000)).toBeUndefined();
  process.emit("SIGTERM", "SIGTERM");
  expect(await interruption.before(1_000_001)).toBe("SIGTERM");
});
