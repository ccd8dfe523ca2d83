import { expect, it } from "vitest";
import { OptionsError } from "./options-error.ts";
import { parseYaml } from "./yaml.ts";

it("says what is wrong with a recipe in three lines at most, though one mistake may cause hundreds", () => {
  const wrong = `optimizer: {\n${"  - : [\n".repeat(300)}`;
  const lines = (() => {
    try {
      parseYaml(wrong, "my.yaml");
    } catch (error) {
      return (error as OptionsError).lines;
    }
    throw new Error("it was taken");
  })();
  expect(lines).toHaveLength(3);
  for (const line of lines) expect(line).toMatch(/^my\.yaml: not valid YAML: .* at line \d+, column \d+/);
  expect(() => parseYaml("a: [1", "my.yaml")).toThrow(OptionsError);
});

it("asks for the space after a colon", () => {
  for (const text of ["{name:lion}", "a: 1\nb: [{name:lion, lr: 1}]"])
    expect(() => parseYaml(text, "optimizer")).toThrow(
      "optimizer: name:lion is a key without a value: put a space after the colon",
    );
  expect(() => parseYaml("steps:12\nseed: 1", "my.yaml")).toThrow(/at line 1, .*is there a space after each colon/);
  expect(parseYaml('{"a:b", c: "d:e", f: null}', "x")).toEqual({ "a:b": null, c: "d:e", f: null });
});
