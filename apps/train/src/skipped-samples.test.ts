import { loopback } from "@terse/collectives";
import { DataError, type Dataset } from "@terse/data";
import { expect, it } from "vitest";
import { skippedSamples, skippedText } from "./skipped-samples.ts";

const data = (mostSkipped: number | undefined, ...skipped: string[]) =>
  ({
    source: "pictures",
    unit: "image",
    trainingUnits: 190,
    validationUnits: 10,
    mostSkipped,
    skipped,
  }) as object as Dataset;

const onRanks = async (...each: Dataset[]) => {
  const groups = loopback(each.length);
  const settled = await Promise.allSettled(groups.map((group, rank) => skippedSamples(each[rank]!, group)));
  await Promise.all(groups.map((group) => group.close()));
  return settled.map((result) => (result.status === "fulfilled" ? result.value : result.reason));
};

it("samples that ranks could not read are counted once, on all of them", async () => {
  const [a, b] = await onRanks(
    data(4, "b.jpg (it is empty)", "a\n.jpg (x)"),
    data(4, "c.jpg (y)", "b.jpg (it is empty)"),
  );
  expect(a).toEqual(["a\n.jpg (x)", "b.jpg (it is empty)", "c.jpg (y)"]);
  expect(b).toEqual(a);
  expect(skippedText([...a, "d.jpg (z)"], data(4))).toBe(
    "4 images could not be decoded: a\n.jpg (x), b.jpg (it is empty), c.jpg (y), …",
  );
  expect(skippedText([], data(4))).toBeUndefined();
});

it("more than may be end the run of every rank, though each has met fewer", async () => {
  const errors = await onRanks(data(2.5, "a.jpg (x)", "b.jpg (x)"), data(2.5, "c.jpg (y)"));
  for (const error of errors) {
    expect(error).toBeInstanceOf(DataError);
    expect(error.message).toBe(
      "pictures: 3 of 200 images cannot be decoded, and data.maxCorrupt allows 2; the last is c.jpg (y). Raise data.maxCorrupt, also to resume a run, or replace them and start a new one.",
    );
  }
});

it("data that skips no samples sends nothing", async () => {
  expect(await onRanks(data(undefined))).toEqual([[]]);
});
