import { describe, expect, it } from "vitest";
import { OptionsError } from "./options-error.ts";

describe("an OptionsError", () => {
  it("names a section's options where they stand in a recipe, and leaves other lines as they are", () => {
    const error = new OptionsError([
      { path: "gpt.heads", problem: "5 heads do not divide a width of 64", remedy: "take 4" },
      { path: "gpt.rope.type", problem: "is unknown" },
      "the data has no classes",
    ]);
    expect(error.inSection("model").lines).toEqual([
      "model.heads: 5 heads do not divide a width of 64; take 4",
      "model.rope.type: is unknown",
      "the data has no classes",
    ]);
  });
});
