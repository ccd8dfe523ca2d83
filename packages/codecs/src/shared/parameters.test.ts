import { describe, expect, it } from "vitest";
import { dctTopK } from "../codecs/dct-top-k/dct-top-k.ts";
import { int8 } from "../codecs/int8/int8.ts";
import { l1 } from "../codecs/l1/l1.ts";
import { topK } from "../codecs/top-k/top-k.ts";
import { checkChoice, checkNames, checkScaleGroups, checkWhole } from "./parameters.ts";
import { scaleGroupCount } from "./scale-groups/scale-groups.ts";

describe("the checks of parameters", () => {
  it("refuse a parameter that is not taken", () => {
    expect(() => checkNames("qsgd", { k: 3 }, ["bits", "block"])).toThrow("qsgd takes bits, block, not k.");
  });

  it.each([1.5, Number.NaN, -1, 9])("refuse %s as a whole number from 2 to 8", (bits) => {
    expect(() => checkWhole("qsgd", "bits", bits, 2, 8)).toThrow(
      `qsgd: bits is ${bits}, and must be a whole number, from 2 to 8.`,
    );
  });

  it("refuse blocks of nothing, negative segments, and both at once", () => {
    expect(() => checkScaleGroups("l1", { block: 0 })).toThrow(
      "l1: block is 0, and must be a whole number, 1 or more.",
    );
    expect(() => checkScaleGroups("l1", { segments: [4, -4] })).toThrow("l1: segments[1] is -4");
    expect(() => checkScaleGroups("l1", { segments: 4 as never })).toThrow("l1: segments must be an array");
    expect(() => checkScaleGroups("l1", { block: 64, segments: [64] })).toThrow("both block and segments");
    checkScaleGroups("l1", { segments: [0, 4] });
    checkScaleGroups("l1", { block: 64 });
  });

  it("refuse a value of the wrong type, and a number that is too large", () => {
    const factories = [l1, topK, int8, dctTopK] as readonly ((parameters: never) => unknown)[];
    for (const factory of factories)
      expect(() => factory(null as never)).toThrow("parameters are null, and must be an object");
    expect(() => (topK as () => unknown)()).toThrow("top-k: parameters are undefined");
    expect(() => l1({ bits: 4, unscaled: "no" as never })).toThrow("l1: unscaled is no, and must be true or false");
    expect(() => checkWhole("l1", "block", 2 ** 49, 1)).toThrow("must be a whole number, from 1 to 281474976710656");
  });

  it("refuse a word that is none of the choices", () => {
    expect(() => checkChoice("linf", "levels", "even", ["uniform", "logarithmic"])).toThrow(
      "linf: levels is even, and must be uniform or logarithmic.",
    );
  });

  it("refuse segments that do not add up to the number of floats, with both numbers", () => {
    expect(() => scaleGroupCount(12, { segments: [4, 6] })).toThrow(RangeError);
    expect(() => scaleGroupCount(12, { segments: [4, 6] })).toThrow("add up to 10 floats, and there are 12");
    expect(scaleGroupCount(10, { segments: [4, 0, 6] })).toBe(3);
  });
});
