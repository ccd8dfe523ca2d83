import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadModel, saveModel } from "@terse/checkpoint";
import { manualSeed, randint, randn, scope, withDevice } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { needsModules, relativeError, runPython } from "../../../tensor/src/testing/python.ts";
import { countParameters, models, restoreModel, Vit, type VitOptions, vitPresets } from "../index.ts";
import { compareImages } from "../testing/compare-images.ts";
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
        const full = withDevice("meta", () => new Vit(vitPresets[preset]));
        const expected = await runPython(`
import timm
with torch.device("meta"): m = timm.create_model("${name}")
outputs["count"] = sum(p.numel() for p in m.parameters())
for n, t in m.state_dict().items(): outputs[n] = torch.tensor(t.shape)`);
        expect(full.parameterCount()).toBe(expected["count"]!.item());
        delete expected["count"];
        const shapes = await Promise.all(
          Object.entries(expected).map(async ([n, t]) => `${n} ${[...(await t.toTypedArray())].join()}`),
        );
        expect(
          full
            .stateDict()
            .map(([n, { shape }]) => `${n} ${shape.join()}`)
            .sort(),
        ).toEqual(shapes.sort());

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

describe("vit", () => {
  const images = (rows: number, size = 16) => ({
    images: randn([rows, 3, size, size]),
    labels: randint(0, 5, [rows]),
  });

  it("counts its parameters without making the model, and is made anew from its config", () => {
    for (const given of [tiny, { ...tiny, distilled: true, channels: 1, layers: 3 }]) {
      const model = new Vit(given);
      const config = { model_type: "vit", ...model.config };
      expect(countParameters(config)).toBe(model.parameterCount());
      expect(countParameters({ ...config, layers: 1e9 })).toBeGreaterThan(1e12);
      expect(restoreModel(JSON.parse(JSON.stringify(config))).config).toEqual(model.config);
    }
  });

  it("takes classes, channels and size from the data, and refuses others", () => {
    const create = (given: object, data: object) =>
      models.vit.create({ preset: "deit-tiny", layers: 1, ...given }, data);
    const data = { classes: 10, channels: 3, height: 32, width: 32 };
    expect(create({ patchSize: 4 }, data).config).toMatchObject({ imageSize: 32, patchSize: 4, classes: 10 });
    expect(() => create({}, { ...data, width: 48 })).toThrow(/model\.imageSize: the data's images have 32×48 pixels/);
    expect(() => create({ imageSize: 64 }, data)).toThrow(/32×32 pixels, the model takes 64×64/);
    expect(() => create({ patchSize: 5 }, data)).toThrow(/imageSize must be a multiple of patchSize/);
    expect(() => new Vit({ ...tiny, heads: 3 })).toThrow(/width must be a multiple of heads/);
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

  it("takes weights of another image size from a folder, and refuses those of another width", async () => {
    const folder = mkdtempSync(join(tmpdir(), "terse-vit-"));
    try {
      const model = new Vit({ ...tiny, distilled: true });
      await saveModel(folder, model.stateDict(), { model_type: "vit", ...model.config });
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
