/** The processors that transformers writes, and what is read of them. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { needsModules, runPython } from "../../../../packages/tensor/src/testing/python.ts";
import { imageFormOf } from "./image-form.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-image-form-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const half = [0.5, 0.5, 0.5];
const missing = needsModules("transformers");

describe.skipIf(missing !== "")(`a preprocessor_config.json of transformers${missing}`, () => {
  it.each([
    ["ViTImageProcessor", "size=dict(height=96, width=96)", { size: 96, mean: half, deviation: half }],
    ["ViTImageProcessor", "do_normalize=False", { size: 224, mean: [0, 0, 0], deviation: [1, 1, 1] }],
    [
      "DeiTImageProcessor",
      "size=dict(height=256, width=256), crop_size=dict(height=192, width=192), image_mean=[0.1, 0.2, 0.3]",
      { size: 192, mean: [0.1, 0.2, 0.3] },
    ],
    ["ConvNextImageProcessor", "size=dict(shortest_edge=160)", { size: 160 }],
    ["CLIPImageProcessor", "size=dict(shortest_edge=64), crop_size=dict(height=48, width=48)", { size: 48 }],
  ])("gives size, mean and deviation: %s(%s)", async (name, options, expected) => {
    await runPython(`
import transformers as t
t.${name}(${options}).save_pretrained(${JSON.stringify(folder)})`);
    expect(imageFormOf(folder)).toMatchObject(expected);
  });
});

const write = (processor: unknown) =>
  writeFileSync(
    join(folder, "preprocessor_config.json"),
    typeof processor === "string" ? processor : JSON.stringify(processor),
  );

it("may say little, or have the size of older files", () => {
  write({ size: 128 });
  expect(imageFormOf(folder)).toEqual({ size: 128 });
  write({ size: { height: 0 }, image_mean: [1, 2], image_std: "x" });
  expect(imageFormOf(folder)).toEqual({});
  expect(imageFormOf(join(folder, "none"))).toEqual({});
});

it.each([
  [{ rescale_factor: 1 / 127.5 }, /rescale_factor: is 0\.00784\d*, and only 1\/255 is known here/],
  [{ do_rescale: false }, /rescale_factor: is 1, and only/],
  ["{", /is not a JSON object/],
  ["[]", /is not a JSON object/],
])("is refused where pictures would be others: %j", (processor, message) => {
  write(processor);
  expect(() => imageFormOf(folder)).toThrow(message);
});
