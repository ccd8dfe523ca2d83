/** Every operation beside torchvision's on the same pictures, with the same magnitudes. */
import { fromTypedArray } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { needsModules, runPython } from "../../../../tensor/src/testing/python.ts";
import { RandomNumbers } from "../../random.ts";
import { cifarPolicy } from "./auto-augment.ts";
import { type OperationName, operations } from "./operations.ts";
import { randAugmentOperations } from "./rand-augment.ts";

const why = needsModules("torchvision", "PIL");

const [height, width, pictures] = [24, 32, 4];
/** Noise, a gradient, a dark picture of few values, one colour. */
const data = Uint8Array.from({ length: pictures * height * width * 3 }, (_, i) => {
  const each = height * width * 3;
  const [picture, at] = [Math.floor(i / each), i % each];
  const word = new RandomNumbers(5, i, "images").word();
  return [word & 255, Math.floor((at * 255) / each), 40 + (word & 15), 77][picture]!;
});

describe.skipIf(why)(`operations on images${why}`, () => {
  it.each(Object.keys(operations) as OperationName[])(
    "%s gives torchvision's bytes at every magnitude",
    async (name) => {
      const shares = Array.from({ length: 10 }, (_, i) => i / 9);
      const signs = [1, -1];
      const images = fromTypedArray(data, [pictures, height, width, 3]);
      const outputs = await runPython(
        `
import math, numpy as np
from PIL import Image
from torchvision.transforms import autoaugment
from torchvision.transforms.functional import InterpolationMode
name, width = "${name}", ${width}
results = []
for image in inputs["images"].numpy():
    for share in ${JSON.stringify(shares)}:
        for sign in ${JSON.stringify(signs)}:
            magnitude = {"ShearX": 0.3, "ShearY": 0.3, "TranslateX": 150 / 331 * width, "TranslateY": 150 / 331 * ${height},
                         "Rotate": 30, "Brightness": 0.9, "Color": 0.9, "Contrast": 0.9, "Sharpness": 0.9}.get(name, 0) * share * sign
            if name == "Posterize": magnitude = 8 - round(4 * share)
            if name == "Solarize": magnitude = 255 - 255 * share
            out = autoaugment._apply_op(Image.fromarray(image), name, magnitude, InterpolationMode.NEAREST, None)
            results.append(torch.from_numpy(np.array(out)))
outputs["results"] = torch.stack(results)
`,
        { images },
      );
      const expected = (await outputs["results"]!.toTypedArray()) as Uint8Array;
      const each = height * width * 3;
      let at = 0;
      for (let picture = 0; picture < pictures; picture++)
        for (const share of shares)
          for (const sign of signs) {
            const pixels = { data: data.subarray(picture * each, (picture + 1) * each), height, width };
            const result = operations[name](pixels, share, sign).data;
            const wrong = result.findIndex((byte, i) => byte !== expected[at * each + i]);
            expect([name, picture, share, sign, wrong]).toEqual([name, picture, share, sign, -1]);
            at++;
          }
    },
  );

  it("are those of torchvision's policies", async () => {
    const { names, numbers, rand } = await runPython(`
from torchvision.transforms import AutoAugment, AutoAugmentPolicy, RandAugment
policies = AutoAugment(AutoAugmentPolicy.CIFAR10).policies
text = lambda names: torch.tensor(list(" ".join(names).encode()), dtype=torch.uint8)
outputs["names"] = text([op[0] for pair in policies for op in pair])
outputs["numbers"] = torch.tensor([[op[1], op[2] or 0] for pair in policies for op in pair], dtype=torch.float64)
outputs["rand"] = text(sorted(RandAugment()._augmentation_space(31, (32, 32)).keys()))
`);
    const textOf = async (tensor: typeof names) => Buffer.from((await tensor!.toTypedArray()) as Uint8Array).toString();
    const flat = cifarPolicy.flat();
    expect(await textOf(names)).toBe(flat.map(([name]) => name).join(" "));
    expect(await numbers!.toTypedArray()).toEqual(Float64Array.from(flat.flatMap(([, p, m]) => [p, m])));
    expect(await textOf(rand)).toBe(randAugmentOperations.toSorted().join(" "));
  });
});
