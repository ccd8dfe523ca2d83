import { flag, positive, positiveInteger, unitInterval, v } from "@terse/options";
import { divides } from "../divides.ts";
import { layerCount } from "../layer-count.ts";

/** The schema of ViT's options. `heads` must divide `width`, and `patchSize` must divide `imageSize`. */
export const vitOptions = v.pipe(
  v.object({
    imageSize: v.optional(positiveInteger, 224), // height and width, in pixels
    patchSize: v.optional(positiveInteger, 16), // p: height and width of a patch
    width: v.optional(positiveInteger, 192), // d
    heads: v.optional(positiveInteger, 3), // d / heads per head
    layers: v.optional(layerCount, 12),
    distilled: v.optional(flag, false), // whether there is a distillation token
    distillationHead: v.optional(flag, true), // of that token; without it, the class token alone has one
    eps: v.optional(positive, 1e-6), // of the norms; transformers' default is 1e-12
    classes: v.optional(positiveInteger, 1000), // K
    channels: v.optional(positiveInteger, 3), // C of the images
    labelSmoothing: v.optional(unitInterval, 0), // in training
  }),
  divides("heads", "width"),
  divides("patchSize", "imageSize"),
);

/** The options of ViT; all have defaults. */
export type VitOptions = v.InferInput<typeof vitOptions>;
/** The options of ViT with every default filled in. */
export type VitShape = v.InferOutput<typeof vitOptions>;

const common = {
  imageSize: 224,
  patchSize: 16,
  layers: 12,
  distilled: false,
  distillationHead: true,
  eps: 1e-6,
  classes: 1000,
  channels: 3,
  labelSmoothing: 0,
};
const tiny = { ...common, width: 192, heads: 3 };
const small = { ...common, width: 384, heads: 6 };
const base = { ...common, width: 768, heads: 12 };

/** Touvron et al. 2021, table 1; Dosovitskiy et al. 2021, table 1, and ViT-S/16, which has the shape of DeiT-Small. */
export const vitPresets = {
  "deit-tiny": tiny,
  "deit-small": small,
  "deit-base": base,
  "deit-tiny-distilled": { ...tiny, distilled: true },
  "deit-small-distilled": { ...small, distilled: true },
  "deit-base-distilled": { ...base, distilled: true },
  "vit-small": small,
  "vit-base": base,
} satisfies Record<string, VitShape>;
