/**
 * ResNet, He et al. 2016, https://arxiv.org/abs/1512.03385, with torchvision's names, and with those of transformers in
 * files: ResNet-18, -34 and -50 for ImageNet; and ResNet-18 for CIFAR as in the Cutout paper, DeVries and Taylor 2017,
 * https://arxiv.org/abs/1708.04552, §4.1: a 3×3 stem without max-pool.
 *
 * Shapes: images (B, C, H, W)   x (B, w, H/4, W/4), for CIFAR (B, w, H, W)   logits (B, K)
 * Each later stage has twice the channels, and half the height and width.
 */
import { parseOptions } from "@terse/options";
import {
  AdaptiveAvgPool2d,
  BatchNorm2d,
  Conv2d,
  Linear,
  MaxPool2d,
  noGrad,
  Sequential,
  type Tensor,
} from "@terse/tensor";
import type { HuggingFaceConfig } from "../hugging-face-config.ts";
import { ImageClassifier } from "../image-classifier.ts";
import type { DataFacts } from "../model.ts";
import { BasicBlock, Bottleneck } from "./blocks.ts";
import { toConfig } from "./config.ts";
import { storedAs } from "./names.ts";
import { type ResNetOptions, type ResNetShape, resnetOptions, stagesOf } from "./options.ts";

type Size = readonly [height: number, width: number];

/** ResNet-18, -34 or -50. images (B, C, H, W) → logits (B, K). He et al. 2016. */
export class ResNet extends ImageClassifier {
  readonly conv1: Conv2d;
  readonly bn1: BatchNorm2d;
  readonly maxpool: MaxPool2d | null; // null for CIFAR
  readonly layer1: Sequential;
  readonly layer2: Sequential;
  readonly layer3: Sequential;
  readonly layer4: Sequential;
  readonly avgpool = new AdaptiveAvgPool2d(1);
  readonly fc: Linear;

  readonly shape: ResNetShape;
  readonly headNames = /^(fc|classifier)\./;
  readonly basePrefix = "resnet.";

  constructor(options: ResNetOptions) {
    super();
    const shape = parseOptions(resnetOptions, options, "resnet");
    this.shape = shape;
    const { width: w, channels, stem } = shape;
    const { blocks, bottleneck } = stagesOf[shape.depth];
    const Block = bottleneck ? Bottleneck : BasicBlock;
    let inputs = w;
    const stage = (index: 0 | 1 | 2 | 3) => {
      const width = w * 2 ** index;
      const blocksOfStage = Array.from({ length: blocks[index] }, (_, i) => {
        const block = new Block(inputs, width, i === 0 && index > 0 ? 2 : 1);
        inputs = width * Block.expansion;
        return block;
      });
      return new Sequential(...blocksOfStage);
    };
    this.conv1 =
      stem === "cifar"
        ? new Conv2d(channels, w, 3, { padding: 1, bias: false })
        : new Conv2d(channels, w, 7, { stride: 2, padding: 3, bias: false });
    this.bn1 = new BatchNorm2d(w);
    this.maxpool = stem === "cifar" ? null : new MaxPool2d(3, { stride: 2, padding: 1 });
    this.layer1 = stage(0);
    this.layer2 = stage(1);
    this.layer3 = stage(2);
    this.layer4 = stage(3);
    this.fc = new Linear(inputs, shape.classes, { role: "head" });
    this.initialise();
  }

  forward(images: Tensor): Tensor {
    let x = this.bn1.forward(this.conv1.forward(images)).relu_();
    x = this.maxpool?.forward(x) ?? x;
    for (const stage of [this.layer1, this.layer2, this.layer3, this.layer4]) x = stage.forward(x);
    return this.fc.forward(this.avgpool.forward(x).flatten(1));
  }

  /** Older weights lack the number of batches, which changes no result. */
  mayBeAbsent(parameter: string): boolean {
    return parameter.endsWith(".num_batches_tracked");
  }

  /** For an image of this size: every filter at every place of its output. */
  multiplications({ height = 224, width = 224 }: DataFacts): number {
    const half = ([h, w]: Size): Size => [Math.ceil(h / 2), Math.ceil(w / 2)];
    const at = ([h, w]: Size, ...filters: Conv2d[]) =>
      filters.reduce((sum, { weight }) => sum + weight.length * h * w, 0);
    let size: Size = this.shape.stem === "cifar" ? [height, width] : half([height, width]);
    let sum = at(size, this.conv1) + this.fc.weight.length;
    if (this.maxpool) size = half(size);
    for (const [i, stage] of [this.layer1, this.layer2, this.layer3, this.layer4].entries())
      for (const [j, block] of (stage.modules as readonly (BasicBlock | Bottleneck)[]).entries()) {
        const before = size;
        if (i > 0 && j === 0) size = half(size);
        sum += at(block instanceof Bottleneck ? before : size, block.conv1) + at(size, block.conv2);
        if (block instanceof Bottleneck) sum += at(size, block.conv3);
        if (block.downsample) sum += at(size, block.downsample.at(0) as Conv2d);
      }
    return sum;
  }

  get config(): HuggingFaceConfig {
    return toConfig(this.shape);
  }

  /**
   * transformers' names, except for CIFAR, which it does not have. Files may also have torchvision's, which are the
   * names here.
   */
  storedAs(parameter: string): readonly string[] {
    return this.shape.stem === "cifar" ? [parameter] : storedAs(parameter);
  }

  protected get device(): string {
    return this.fc.weight.device;
  }

  /**
   * Convolutions from N(0, 2/(out · kh · kw)), as torchvision. He et al. 2015, https://arxiv.org/abs/1502.01852,
   * equation 14, backward case.
   */
  private initialise(): void {
    noGrad(() => {
      for (const parameter of this.parameters()) {
        if (parameter.shape.length !== 4) continue;
        const [outputs, , height, width] = parameter.shape as [number, number, number, number];
        parameter.normal_({ std: Math.sqrt(2 / (outputs * height * width)) });
      }
    });
  }
}
