import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, loadModel, readSafetensors, saveModel } from "@terse/checkpoint";
import { OptionsError } from "@terse/options";
import { manualSeed, noGrad, randint, randn, scope, withDevice } from "@terse/tensor";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needsModules, relativeError, runPython } from "../../../tensor/src/testing/python.ts";
import { models, ResNet, type ResNetOptions, resnetPresets, restoreModel } from "../index.ts";
import { compareImages } from "../testing/compare-images.ts";
import { namesAndShapes, namesAndShapesThere } from "../testing/names-and-shapes.ts";

const missing = needsModules("torchvision");
const narrow: ResNetOptions = { depth: 18, stem: "cifar", width: 8, classes: 5 };

/** torchvision's model with another number of channels, which it has no option for. */
const torchvision = `
import torchvision.models as t
from torchvision.models.resnet import BasicBlock, Bottleneck
class OfWidth(t.ResNet):
    def __init__(self, width, block, blocks, classes):
        self.width = width
        super().__init__(block, blocks)
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.fc = nn.Linear(8 * width * block.expansion, classes)
    def _make_layer(self, block, planes, *more, **named):
        if planes == 64: self.inplanes = self.width
        return super()._make_layer(block, planes * self.width // 64, *more, **named)
def for_cifar(m):
    m.conv1 = nn.Conv2d(3, m.conv1.out_channels, 3, padding=1, bias=False)
    m.maxpool = nn.Identity()
    return m
`;

describe.skipIf(missing !== "")(`resnet beside torchvision, with the same weights${missing}`, () => {
  it.each([
    ["ResNet-18 for CIFAR", { depth: 18, stem: "cifar" }, "for_cifar(OfWidth(16, BasicBlock, [2, 2, 2, 2], 7))"],
    ["ResNet-18", { depth: 18 }, "OfWidth(16, BasicBlock, [2, 2, 2, 2], 7)"],
    ["ResNet-34", { depth: 34 }, "OfWidth(16, BasicBlock, [3, 4, 6, 3], 7)"],
    ["ResNet-50", { depth: 50 }, "OfWidth(16, Bottleneck, [3, 4, 6, 3], 7)"],
  ] as [string, ResNetOptions, string][])(
    "%s, narrow, has its logits, loss, gradients and statistics",
    (_, options, m) =>
      scope(async () => {
        manualSeed(1);
        const model = new ResNet({ ...options, width: 16, classes: 7 });
        const size = options.stem === "cifar" ? 16 : 64;
        await compareImages(model, `${torchvision}m = ${m}`, { rows: 8, size, classes: 7 });
        model.dispose();
      }),
  );

  it("ResNet-18 for CIFAR, of its full width, has its logits, loss, gradients and statistics", () =>
    scope(async () => {
      manualSeed(1);
      const model = new ResNet(resnetPresets["resnet18-cifar"]);
      const m = `${torchvision}m = for_cifar(t.resnet18(num_classes=10))`;
      await compareImages(model, m, { rows: 4, size: 16, classes: 10 });
      model.dispose();
    }));

  it.each([
    ["resnet18", 224],
    ["resnet50", 128],
  ] as const)("%s, of its full width, has its logits, loss, gradients and statistics at %i pixels", (name, size) =>
    scope(async () => {
      manualSeed(1);
      const model = new ResNet({ ...resnetPresets[name], classes: 10 });
      await compareImages(model, `${torchvision}m = t.${name}(num_classes=10)`, { rows: 2, size, classes: 10 });
      model.dispose();
    }),
  );

  it("opens weights that torchvision saved, and torchvision opens those saved here", () =>
    scope(async () => {
      const folder = mkdtempSync(join(tmpdir(), "terse-resnet-"));
      try {
        manualSeed(2);
        const images = randn([2, 3, 64, 64]);
        const file = JSON.stringify(join(folder, "model.safetensors"));
        const logits = (line: string) =>
          runPython(
            `${torchvision}
from safetensors.torch import load_file, save_file
m = OfWidth(16, BasicBlock, [2, 2, 2, 2], 7)
${line}
outputs["logits"] = m.eval()(inputs["images"])`,
            { images },
          );
        const older = `save_file({n: t for n, t in m.state_dict().items() if "num_batches" not in n}, ${file})`;
        await logits(older);
        const first = new ResNet({ depth: 18, width: 16, classes: 7 });
        await loadModel(folder, first.stateDict(), first); // weights from before PyTorch counted batches
        await expect(loadModel(folder, first.stateDict())).rejects.toThrow(/missing bn1\.num_batches_tracked/);
        first.dispose();
        // One pass moves the statistics.
        const saved = await logits(`m(inputs["images"]); save_file(m.state_dict(), ${file})`);
        const model = new ResNet({ depth: 18, width: 16, classes: 7 }).eval();
        await loadModel(folder, model.stateDict(), model);
        expect(model.bn1.numBatchesTracked!.item()).toBe(1);
        expect(
          relativeError(
            noGrad(() => model.forward(images)),
            saved["logits"]!,
          ),
        ).toBeLessThan(1e-5);
        noGrad(() => model.train().forward(images)); // and moves them again
        model.eval();
        await saveModel(folder, model.stateDict(), model.config);
        const opened = await logits(`m.load_state_dict(load_file(${file}), strict=True)`);
        expect(
          relativeError(
            noGrad(() => model.forward(images)),
            opened["logits"]!,
          ),
        ).toBeLessThan(1e-5);
        model.dispose();
      } finally {
        rmSync(folder, { recursive: true });
      }
    }));

  it.each(["resnet18", "resnet34", "resnet50"] as const)(
    "%s has its names, shapes and published number of parameters",
    (name) =>
      scope(async () => {
        const { count } = await runPython(`
import torchvision.models as t
outputs["count"] = t.get_model_weights("${name}").IMAGENET1K_V1.meta["num_params"]`);
        const model = withDevice("meta", () => new ResNet(resnetPresets[name]));
        expect(model.parameterCount()).toBe(count!.item());
        expect(namesAndShapes(() => new ResNet(resnetPresets[name]))).toEqual(
          await namesAndShapesThere(`import torchvision.models as t; m = t.${name}()`),
        );
      }),
  );
});

const transformers = needsModules("transformers", "safetensors");

describe.skipIf(transformers !== "")(`resnet beside transformers${transformers}`, () => {
  const folder = mkdtempSync(join(tmpdir(), "terse-resnet-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  beforeAll(async () => {
    // Takes a moment.
    await runPython("from transformers import ResNetForImageClassification, logging; logging.disable_progress_bar()");
  });

  it.each([18, 34, 50] as const)("ResNet-%i opens there, and its folders open here, with the same logits", (depth) =>
    scope(async () => {
      manualSeed(5);
      const model = new ResNet({ depth, width: 8, classes: 7 });
      noGrad(() => {
        for (const p of model.parameters()) if (p.shape.length === 1) p.add_(randn(p.shape), { alpha: 0.1 });
      });
      const images = randn([4, 3, 64, 64]);
      noGrad(() => model.forward(images)); // moves the statistics
      const [ours, theirs] = [join(folder, `ours-${depth}`), join(folder, `theirs-${depth}`)];
      await saveModel(ours, model.stateDict(), model.config, model);
      const { logits } = await runPython(
        `
from transformers import AutoModelForImageClassification, ResNetForImageClassification
model, info = AutoModelForImageClassification.from_pretrained(${JSON.stringify(ours)}, output_loading_info=True)
assert type(model) is ResNetForImageClassification, type(model)
assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
outputs["logits"] = model(inputs["images"]).logits
model.save_pretrained(${JSON.stringify(theirs)})`,
        { images },
      );
      const expected = noGrad(() => model.eval().forward(images));
      expect(relativeError(expected, logits!)).toBeLessThan(1e-5);
      const opened = restoreModel(await loadConfig(theirs)) as ResNet;
      await loadModel(theirs, opened.stateDict(), opened);
      expect(noGrad(() => opened.eval().forward(images)).equal(expected)).toBe(true);
    }),
  );

  it("the form for CIFAR, which it does not have, is refused by its name, and has torchvision's names", () =>
    scope(async () => {
      const model = new ResNet(narrow);
      const path = join(folder, "cifar");
      await saveModel(path, model.stateDict(), model.config, model);
      const opens = runPython(`
from transformers import AutoModelForImageClassification
AutoModelForImageClassification.from_pretrained(${JSON.stringify(path)})`);
      await expect(opens).rejects.toThrow(/model type `terse-resnet` but Transformers does not recognize this/);
      const stored = await readSafetensors(join(path, "model.safetensors"));
      expect([...stored.keys()].sort()).toEqual(
        model
          .stateDict()
          .map(([name]) => name)
          .sort(),
      );
    }));
});

describe("resnet", () => {
  const images = (rows: number, size: number) => ({
    images: randn([rows, 3, size, size]),
    labels: randint(0, 5, [rows]),
  });

  it("smooths labels in training alone", () =>
    scope(() => {
      manualSeed(6);
      const model = new ResNet({ ...narrow, labelSmoothing: 0.3 });
      const batch = images(4, 8);
      model.loss(batch); // moves the running statistics, which are the same in the two models below
      const plain = new ResNet(narrow);
      const weights = new Map(model.stateDict());
      noGrad(() => {
        for (const [name, tensor] of plain.stateDict()) tensor.copy_(weights.get(name)!);
      });
      const losses = (training: boolean) => [model, plain].map((m) => m.train(training).loss(batch).item());
      expect(losses(false)[0]).toBe(losses(false)[1]);
      expect(losses(true)[0]).not.toBe(losses(true)[1]);
    }));

  it("has 11,173,962 parameters in the form for CIFAR-10", () => {
    expect(withDevice("meta", () => new ResNet(resnetPresets["resnet18-cifar"])).parameterCount()).toBe(11_173_962);
  });

  it("multiplies as often as torchvision publishes beside its weights", async () => {
    // In 10⁹ multiplications and additions of an image of 224 × 224, three digits behind the point.
    const published = { resnet18: 1.814, resnet34: 3.664, resnet50: 4.089 };
    for (const [name, gigaOperations] of Object.entries(published)) {
      const model = withDevice("meta", () => new ResNet(resnetPresets[name as keyof typeof published]));
      expect(model.multiplications({ height: 224, width: 224 }) / 1e9, name).toBeCloseTo(gigaOperations, 3);
    }
  });

  it("is made anew from its config", () => {
    for (const options of [narrow, { depth: 50, width: 4, classes: 3, channels: 1, labelSmoothing: 0.1 } as const]) {
      const model = new ResNet(options);
      const config: object = JSON.parse(JSON.stringify(model.config));
      const again = restoreModel({ ...config }) as ResNet;
      expect(again.stateDict().map(([name]) => name)).toEqual(model.stateDict().map(([name]) => name));
      expect(again.shape).toEqual(model.shape);
    }
  });

  it.each([
    [{ hidden_act: "gelu" }, /hidden_act: is "gelu", and only "relu" is known here/],
    [{ downsample_in_bottleneck: true }, /downsample_in_bottleneck: is true/],
    [{ depths: [3, 4, 23, 3] }, /\[3,4,23,3\] basic layers of \[4,8,16,32\] channels are no ResNet-18, -34 or -50/],
    [{ hidden_sizes: [4, 8, 16, 64] }, /layers of \[4,8,16,64\] channels are no ResNet/],
    [
      { architectures: ["ResNetModel"] },
      /architectures: of resnet only ResNetForImageClassification, .* is known here/,
    ],
  ])("refuses a config that means another model: %o", (config, message) => {
    expect(() => restoreModel({ ...new ResNet({ width: 4 }).config, ...config })).toThrow(message);
  });

  it("takes classes and channels from the data, and refuses others", () => {
    const create = (given: object, data: object) =>
      models.resnet.create({ preset: "resnet18-cifar", width: 4, ...given }, data);
    expect((create({}, { classes: 3, channels: 1, height: 40, width: 32 }) as ResNet).shape).toMatchObject({
      classes: 3,
      channels: 1,
      width: 4,
    });
    expect(() => create({ classes: 2, channels: 3 }, { classes: 3, channels: 1 })).toThrow(
      /model\.classes: the data has 3 classes, the model only 2.*\n.*model\.channels: the data's images have 1 channels, the model takes 3/,
    );
    expect(() => new ResNet({ depth: 20 as 18 })).toThrow(OptionsError);
  });

  it("has roles for the optimizers: filters are matrices, and the last layer is the head", () => {
    const roles = new Map(new ResNet(narrow).namedParameters().map(([name, { role }]) => [name, role]));
    expect(roles.get("conv1.weight")).toBe("matrix");
    expect(roles.get("layer2.0.downsample.1.weight")).toBe("norm");
    expect([roles.get("fc.weight"), roles.get("fc.bias")]).toEqual(["head", "vector"]);
  });
});
