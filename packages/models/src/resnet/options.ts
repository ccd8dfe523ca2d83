import { oneOf, positiveInteger, unitInterval, v } from "@terse/options";

/** Blocks of each stage, and whether they are bottlenecks. He et al. 2016, table 1. */
export const stagesOf = {
  18: { blocks: [2, 2, 2, 2], bottleneck: false },
  34: { blocks: [3, 4, 6, 3], bottleneck: false },
  50: { blocks: [3, 4, 6, 3], bottleneck: true },
} as const;

/** The schema of ResNet's options. */
export const resnetOptions = v.object({
  depth: v.optional(v.picklist([18, 34, 50]), 18),
  stem: v.optional(oneOf(["imagenet", "cifar"]), "imagenet"), // 7×7 of stride 2 and max-pool, or 3×3 for small images
  width: v.optional(positiveInteger, 64), // channels of the first stage; each later stage has twice as many
  classes: v.optional(positiveInteger, 1000), // K
  channels: v.optional(positiveInteger, 3), // C of the images
  labelSmoothing: v.optional(unitInterval, 0), // in training
});

/** The options of ResNet; all have defaults. */
export type ResNetOptions = v.InferInput<typeof resnetOptions>;
/** The options of ResNet with every default filled in. */
export type ResNetShape = v.InferOutput<typeof resnetOptions>;

const imagenet = { stem: "imagenet", width: 64, classes: 1000, channels: 3, labelSmoothing: 0 } as const;

/** ResNets by name: He et al. 2016, and ResNet-18 for CIFAR as in DeVries and Taylor 2017, §4.1. */
export const resnetPresets = {
  "resnet18-cifar": { ...imagenet, depth: 18, stem: "cifar", classes: 10 },
  resnet18: { ...imagenet, depth: 18 },
  resnet34: { ...imagenet, depth: 34 },
  resnet50: { ...imagenet, depth: 50 },
} satisfies Record<string, ResNetShape>;
