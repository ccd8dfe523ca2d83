import { expect, it } from "vitest";
import type { Measurement } from "../measurement.ts";
import { roundWork } from "./round-work.ts";

it("measures the work of a round for each wire, beside the steps between two rounds", async () => {
  const measured: Measurement[] = [];
  for await (const one of roundWork({ side: 256, matrices: 2, rounds: 3 })) measured.push(one);
  expect(measured.map(({ metric }) => metric)).toEqual(Array(4).fill(["round_ms", "round_over_stream"]).flat());
  for (const { value } of measured) expect(value).not.toBeNaN();
});
