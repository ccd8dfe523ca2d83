import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, loadModel, saveModel } from "@terse/checkpoint";
import { manualSeed, noGrad, randint, randn, scope } from "@terse/tensor";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needsModules, relativeError, runPython } from "../../../tensor/src/testing/python.ts";
import { models, restoreModel, Vit, type VitOptions, vitPresets, withNewHead } from "../index.ts";
import { compareImages } from "../testing/compare-images.ts";
import { namesAndShapes, namesAndShapesThere } from "../testing/names-and-shapes.ts";
import { interpolatePositions } from "./interpolate-positions.ts";

const missing = needsModules("timm");
const tiny: VitOptions = { imageSize: 16, patchSize: 4, width: 32, heads: 2, layers: 2, classes: 5 };

describe.skipIf(missing !== "")(`vit beside timm, with the same weights${missing}`, () => {
  it.each([
    ["deit-tiny", "deit_tiny_patch16_224"],
    ["deit-small", "deit_small_patch16_224"],
    ["deit-base", "deit_base_patch16_224"],
    ["deit-tiny-distilled", "deit_tiny_distilled_patch16_224"],
    ["deit-small-distilled", "deit_small_distilled_patch16_224"],
    ["deit-base-distilled", "deit_base_distilled_patch16_224"],
    ["vit-small", "vit_small_patch16_224"],
    ["vit-base", "vit_base_patch16_224"],
  ] as const)(
    "%s has its names and shapes; with one layer and smaller images its logits, loss and gradients",
    (preset, name) =>
      scope(async () => {
        expect(namesAndShapes(() => new Vit(vitPresets[preset]))).toEqual(
          await namesAndShapesThere(`import timm; m = timm.create_model("${name}")`),
        );

        manualSeed(1);
        const model = new Vit({ ...vitPresets[preset], imageSize: 32, layers: 1, classes: 7 });
        await compareImages(
          model,
          `import timm; m = timm.create_model("${name}", img_size=32, depth=1, num_classes=7)`,
          {
            rows: 3,
            size: 32,
            classes: 7,
          },
        );
        model.dispose();
      }),
  );

  it("DeiT-Tiny has its logits, loss and gradients with all of its layers and images of 224 pixels", () =>
    scope(async () => {
      manualSeed(1);
      const model = new Vit({ ...vitPresets["deit-tiny"], classes: 10 });
      const pytorch = `import timm; m = timm.create_model("deit_tiny_patch16_224", num_classes=10)`;
      await compareImages(model, pytorch, { rows: 1, size: 224, classes: 10 });
      model.dispose();
    }));

  it.each([
    ["vit-small", "vit_small_patch16_224"],
    ["deit-tiny-distilled", "deit_tiny_distilled_patch16_224"],
  ] as const)("%s has its logits with the file that it saved, of 12 layers and images of 224 pixels", (preset, name) =>
    scope(async () => {
      const folder = mkdtempSync(join(tmpdir(), "terse-vit-"));
      try {
        const images = randn([2, 3, 224, 224]);
        const { logits } = await runPython(
          `
import timm
from safetensors.torch import save_model
torch.manual_seed(3)
m = timm.create_model("${name}", num_classes=11).eval()
with torch.no_grad():
    for p in m.parameters(): p.add_(0.02 * torch.randn_like(p))
    outputs["logits"] = m(inputs["images"])
save_model(m, ${JSON.stringify(join(folder, "model.safetensors"))})`,
          { images },
        );
        const model = new Vit({ ...vitPresets[preset], classes: 11 }).eval();
        await loadModel(folder, model.stateDict(), model);
        const mine = noGrad(() => model.forward(images));
        expect(relativeError(mine, logits!)).toBeLessThan(1e-5);
        model.dispose();
      } finally {
        rmSync(folder, { recursive: true });
      }
    }),
  );

  it.each([
    [1, 4, 7],
    [2, 6, 3],
  ])("interpolates positions as it does: %i tokens, from %i to %i patches in a row", (prefix, from, to) =>
    scope(async () => {
      const positions = randn([1, prefix + from * from, 8]);
      const expected = await runPython(
        `
from timm.layers import resample_abs_pos_embed
outputs["y"] = resample_abs_pos_embed(inputs["positions"], [${to}, ${to}], num_prefix_tokens=${prefix})`,
        { positions },
      );
      expect(relativeError(interpolatePositions(positions, { prefix, grid: to }), expected["y"]!)).toBeLessThan(1e-6);
    }),
  );
});

const transformers = needsModules("transformers", "safetensors");

describe.skipIf(transformers !== "")(`vit beside transformers${transformers}`, () => {
  const folder = mkdtempSync(join(tmpdir(), "terse-vit-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  beforeAll(async () => {
    // Takes a moment.
    await runPython("from transformers import ViTForImageClassification, logging; logging.disable_progress_bar()");
  });

  const batch = () => ({ images: randn([3, 3, 16, 16]), labels: randint(0, 5, [3]) });
  /** Saves a small model whose every weight is random. */
  const saved = (architecture: string, config: string, more = "") => `
import transformers
torch.manual_seed(3)
model = transformers.${architecture}(transformers.${config}(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128,
  image_size=16, patch_size=4, num_labels=5${more}))
with torch.no_grad():
    for p in model.parameters(): p.add_(0.1 * torch.randn_like(p))
model.save_pretrained(${JSON.stringify(join(folder, architecture))})
`;
  const kinds = [
    ["ViTForImageClassification", "ViTConfig", {}],
    ["DeiTForImageClassification", "DeiTConfig", { distilled: true, distillationHead: false }],
    ["DeiTForImageClassificationWithTeacher", "DeiTConfig", { distilled: true }],
  ] as const;

  it.each(kinds)("gives the logits, loss and gradients of %s for the folder that it saved", (architecture, config) =>
    scope(async () => {
      const { images, labels } = batch();
      // A large ε shows whether it is read.
      const { logits, loss } = await runPython(
        `${saved(architecture, config, ", layer_norm_eps=1e-2")}
logits = model(inputs["images"]).logits
loss = F.cross_entropy(logits, inputs["labels"])
loss.backward()
outputs.update(logits=logits, loss=loss)
for name, p in model.named_parameters(): p.data = p.grad
model.save_pretrained(${JSON.stringify(join(folder, "gradients"))})`,
        { images, labels },
      );
      const read = async (path: string) => {
        const model = restoreModel(await loadConfig(path)) as Vit;
        await loadModel(path, model.stateDict(), model);
        return model;
      };
      const model = await read(join(folder, architecture));
      expect(model.shape.eps).toBe(1e-2);
      const mine = model.loss({ images, labels });
      await mine.backward();
      expect(relativeError(model.forward(images), logits!)).toBeLessThan(1e-5);
      expect(relativeError(mine, loss!)).toBeLessThan(1e-5);
      const expected = new Map((await read(join(folder, "gradients"))).namedParameters());
      expect(model.namedParameters().length).toBe(expected.size);
      for (const [name, { grad }] of model.namedParameters())
        expect(relativeError(grad!, expected.get(name)!), name).toBeLessThan(1e-5);
    }),
  );

  it.each(kinds)("opens there with the same logits, as %s", (architecture, _, options) =>
    scope(async () => {
      manualSeed(5);
      const model = new Vit({ ...tiny, ...options, labelSmoothing: 0.1 });
      noGrad(() => {
        for (const p of model.parameters()) p.add_(randn(p.shape), { alpha: 0.1 }); // norms and biases too
      });
      const { images } = batch();
      const path = join(folder, `ours-${architecture}`);
      await saveModel(path, model.stateDict(), model.config, model);
      const { logits } = await runPython(
        `
from transformers import AutoModelForImageClassification, ${architecture}
model, info = AutoModelForImageClassification.from_pretrained(${JSON.stringify(path)}, output_loading_info=True)
assert type(model) is ${architecture}, type(model)
assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
outputs["logits"] = model(inputs["images"]).logits`,
        { images },
      );
      expect(relativeError(model.forward(images), logits!)).toBeLessThan(1e-5);
      const again = restoreModel(await loadConfig(path)) as Vit;
      await loadModel(path, again.stateDict(), again);
      expect(again.shape).toEqual(model.shape);
      expect(again.forward(images).equal(model.forward(images))).toBe(true);
    }),
  );

  it("gives its weights to a model with a new head, also those of ViTModel", () =>
    scope(async () => {
      await runPython(`${saved("ViTForImageClassification", "ViTConfig")}
transformers.ViTModel(model.config).save_pretrained(${JSON.stringify(join(folder, "body"))})`);
      for (const name of ["ViTForImageClassification", "body"]) {
        const model = new Vit({ ...tiny, classes: 9 });
        const before = model.head.weight.clone();
        await expect(loadModel(join(folder, name), model.stateDict(), model)).rejects.toThrow(/head\.weight/);
        await loadModel(join(folder, name), model.stateDict(), withNewHead(model));
        expect(model.head.weight.equal(before)).toBe(true);
      }
    }));
});

describe("vit", () => {
  const images = (rows: number, size = 16) => ({
    images: randn([rows, 3, size, size]),
    labels: randint(0, 5, [rows]),
  });

  it("is made anew from its config", () => {
    const distilled = { ...tiny, distilled: true };
    const more = { channels: 1, layers: 3, eps: 1e-5, labelSmoothing: 0.1 };
    for (const given of [tiny, { ...distilled, ...more }, { ...distilled, distillationHead: false }]) {
      const model = new Vit(given);
      const { config } = model;
      expect((restoreModel(JSON.parse(JSON.stringify(config))) as Vit).shape).toEqual(model.shape);
    }
  });

  it("takes classes, channels and size from the data, and refuses others", () => {
    const create = (given: object, data: object) =>
      models.vit.create({ preset: "deit-tiny", layers: 1, ...given }, data);
    const data = { classes: 10, channels: 3, height: 32, width: 32 };
    expect((create({ patchSize: 4 }, data) as Vit).shape).toMatchObject({ imageSize: 32, patchSize: 4, classes: 10 });
    expect(() => create({}, { ...data, width: 48 })).toThrow(/model\.imageSize: the data's images have 32×48 pixels/);
    expect(() => create({ imageSize: 64 }, data)).toThrow(/32×32 pixels, the model takes 64×64/);
    expect(() => create({ patchSize: 5 }, data)).toThrow(/^vit\.patchSize: 5 does not divide imageSize, 32$/);
    expect(() => new Vit({ ...tiny, heads: 3 })).toThrow(/^vit\.heads: 3 does not divide width, \d+$/);
  });

  it("refuses images of another size, and takes them after resized(), which keeps what it has learned", () =>
    scope(() => {
      const model = new Vit(tiny);
      const { images: large } = images(2, 24);
      expect(() => model.forward(large)).toThrow(/images are 3×24×24, and the model takes 3×16×16/);
      const resized = model.resized(24);
      expect(resized.forward(large).shape).toEqual([2, 5]);
      expect(resized.posEmbed.shape).toEqual([1, 1 + 36, 32]);
      const { images: same } = images(2);
      expect(resized.resized(24).forward(large).equal(resized.forward(large))).toBe(true);
      expect(model.resized(16).forward(same).equal(model.forward(same))).toBe(true);
    }));

  it.each([
    [{ hidden_act: "relu" }, /hidden_act: is "relu", and only "gelu" is known here/],
    [{ intermediate_size: 100 }, /intermediate_size: is 100, and only 128 is known here/],
    [{ qkv_bias: false }, /qkv_bias: is false/],
    [{ hidden_dropout_prob: 0.1 }, /hidden_dropout_prob: is 0.1/],
    [{ architectures: ["ViTModel"] }, /architectures: of vit only ViTForImageClassification, DeiT.* is known here/],
  ])("refuses a config that means another model: %o", (config, message) => {
    expect(() => restoreModel({ ...new Vit(tiny).config, ...config })).toThrow(message);
  });

  it("takes weights of another image size from a folder, and refuses those of another width", async () => {
    const folder = mkdtempSync(join(tmpdir(), "terse-vit-"));
    try {
      const model = new Vit({ ...tiny, distilled: true });
      await saveModel(folder, model.stateDict(), model.config);
      const larger = new Vit({ ...tiny, distilled: true, imageSize: 24 });
      await loadModel(folder, larger.stateDict(), larger);
      const { images: batch } = images(2, 24);
      expect(larger.forward(batch).equal(model.resized(24).forward(batch))).toBe(true);
      const wider = new Vit({ ...tiny, distilled: true, width: 64, imageSize: 24 });
      await expect(loadModel(folder, wider.stateDict(), wider)).rejects.toThrow(
        /pos_embed is \(1, 18, 32\) in the file and \(1, 38, 64\) in the model/,
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("has roles for the optimizers", () => {
    const roles = new Map(
      new Vit({ ...tiny, distilled: true }).namedParameters().map(([name, { role }]) => [name, role]),
    );
    for (const name of ["cls_token", "dist_token", "pos_embed", "patch_embed.proj.weight"])
      expect(roles.get(name), name).toBe("embedding");
    expect(["blocks.0.attn.qkv.weight", "blocks.1.mlp.fc2.weight"].map((name) => roles.get(name))).toEqual([
      "matrix",
      "matrix",
    ]);
    expect([roles.get("head.weight"), roles.get("head_dist.weight"), roles.get("norm.weight")]).toEqual([
      "head",
      "head",
      "norm",
    ]);
  });
});
