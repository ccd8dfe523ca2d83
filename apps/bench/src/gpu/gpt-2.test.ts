import { gptPresets } from "@terse/models";
import { expect, it } from "vitest";
import { operationsPerToken } from "./gpt-2.ts";

it("counts GPT-2's operations as nanoGPT's transformer_sizing does: 875,062,886,400 for 1024 tokens", () => {
  const shape = gptPresets["124M"];
  const withoutPositions = 124_337_664 - 1024 * 768;
  expect(1024 * operationsPerToken(withoutPositions, shape)).toBe(875_062_886_400);
});
