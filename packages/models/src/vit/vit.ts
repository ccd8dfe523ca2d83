/**
 * Vision transformers with timm's names, and with those of transformers in files: ViT, Dosovitskiy et al. 2021,
 * https://arxiv.org/abs/2010.11929, and DeiT, Touvron et al. 2021, https://arxiv.org/abs/2012.12877, with and without
 * the distillation token.
 *
 * Shapes: images (B, C, H, H)   n = (H/p)² patches   x (B, t + n, d), t = 1 or 2 tokens before them   logits (B, K)
 */
import { parseOptions } from "@terse/options";
import {
  Conv2d,
  cat,
  checkpoint,
  createParameter,
  joinHeads,
  LayerNorm,
  Linear,
  Module,
  ModuleList,
  noGrad,
  type Parameter,
  scaledDotProductAttention,
  scope,
  splitHeads,
  type Tensor,
} from "@terse/tensor";
import type { HuggingFaceConfig } from "../hugging-face-config.ts";
import { ImageClassifier } from "../image-classifier.ts";
import { toConfig } from "./config.ts";
import { interpolatePositions } from "./interpolate-positions.ts";
import { basePrefixOf, inMemory, storedAs } from "./names.ts";
import { type VitOptions, type VitShape, vitOptions } from "./options.ts";

class PatchEmbed extends Module {
  readonly proj: Conv2d; // (d, C, p, p)

  constructor({ channels, width, patchSize }: VitShape) {
    super();
    this.proj = new Conv2d(channels, width, patchSize, { stride: patchSize, role: "embedding" });
  }

  /** images (B, C, H, H) → (B, n, d) */
  forward(images: Tensor): Tensor {
    return this.proj.forward(images).flatten(2).transpose(1, 2);
  }
}

class Attention extends Module {
  readonly qkv: Linear; // the rows of q, then k, then v: (3d, d)
  readonly proj: Linear;
  readonly heads: number;

  constructor({ width, heads }: VitShape) {
    super();
    this.qkv = new Linear(width, 3 * width);
    this.proj = new Linear(width, width);
    this.heads = heads;
  }

  forward(x: Tensor): Tensor {
    const [q, k, v] = splitHeads(this.qkv.forward(x), this.heads);
    return this.proj.forward(joinHeads(scaledDotProductAttention(q, k, v)));
  }
}

class Mlp extends Module {
  readonly fc1: Linear; // (4d, d)
  readonly fc2: Linear; // (d, 4d)

  constructor({ width }: VitShape) {
    super();
    this.fc1 = new Linear(width, 4 * width);
    this.fc2 = new Linear(4 * width, width);
  }

  forward(x: Tensor): Tensor {
    return this.fc2.forward(this.fc1.forward(x).gelu());
  }
}

class Block extends Module {
  readonly norm1: LayerNorm;
  readonly attn: Attention;
  readonly norm2: LayerNorm;
  readonly mlp: Mlp;

  constructor(shape: VitShape) {
    super();
    const { width, eps } = shape;
    this.norm1 = new LayerNorm(width, { eps });
    this.attn = new Attention(shape);
    this.norm2 = new LayerNorm(width, { eps });
    this.mlp = new Mlp(shape);
  }

  forward(x: Tensor): Tensor {
    x = x.add(this.attn.forward(this.norm1.forward(x)));
    return x.add(this.mlp.forward(this.norm2.forward(x)));
  }
}

/** Tokens before the patches. */
const prefixOf = ({ distilled }: VitShape) => (distilled ? 2 : 1);

/** Tokens with a head. */
const headsOf = ({ distilled, distillationHead }: VitShape) => (distilled && distillationHead ? 2 : 1);

/** Patches in a row. */
const gridOf = ({ imageSize, patchSize }: VitShape) => imageSize / patchSize;

/**
 * ViT, or DeiT with its distillation token. images (B, C, H, H) → logits (B, K). Dosovitskiy et al. 2021; Touvron et
 * al. 2021.
 */
export class Vit extends ImageClassifier {
  readonly clsToken: Parameter; // (1, 1, d)
  readonly posEmbed: Parameter; // (1, t + n, d)
  readonly distToken: Parameter | null; // (1, 1, d)
  readonly patchEmbed: PatchEmbed;
  readonly blocks: ModuleList<Block>;
  readonly norm: LayerNorm;
  readonly head: Linear; // (K, d), of the class token
  readonly headDist: Linear | null; // (K, d), of the distillation token; null where that has none

  readonly shape: VitShape;
  readonly headNames = /^(head(_dist)?|(cls_|distillation_)?classifier)\./;
  // No class depends on the pooler, or on the token of masked patches.
  readonly unused = /(^|\.)(pooler\.|embeddings\.mask_token$)/;
  activationCheckpointing = false;

  constructor(options: VitOptions) {
    super();
    const shape = parseOptions(vitOptions, options, "vit");
    this.shape = shape;
    const { width, layers, classes, distilled, eps } = shape;
    const tokens = (count: number) => createParameter([1, count, width], "embedding", (x) => x.normal_({ std: 0.02 }));
    this.clsToken = tokens(1);
    this.posEmbed = tokens(prefixOf(shape) + gridOf(shape) ** 2);
    this.distToken = distilled ? tokens(1) : null;
    this.patchEmbed = new PatchEmbed(shape);
    this.blocks = new ModuleList(Array.from({ length: layers }, () => new Block(shape)));
    this.norm = new LayerNorm(width, { eps });
    this.head = new Linear(width, classes, { role: "head" });
    this.headDist = headsOf(shape) === 2 ? new Linear(width, classes, { role: "head" }) : null;
    this.initialise();
  }

  forward(images: Tensor): Tensor {
    const { imageSize, channels } = this.shape;
    const [rows, ...size] = images.shape as [number, ...number[]];
    if (size.join() !== [channels, imageSize, imageSize].join())
      throw new RangeError(
        `vit: images are ${size.join("×")}, and the model takes ${channels}×${imageSize}×${imageSize}; resize the images, or the model by resized()`,
      );
    const first = [this.clsToken, this.distToken].filter((token) => token !== null).map((t) => t.expand(rows, -1, -1));
    let x = cat([...first, this.patchEmbed.forward(images)], 1).add(this.posEmbed);
    for (const block of this.blocks)
      x = this.activationCheckpointing ? checkpoint((x) => block.forward(x), x) : scope(() => block.forward(x));
    x = this.norm.forward(x);
    const logits = this.head.forward(x.select(1, 0));
    return this.headDist ? logits.add(this.headDist.forward(x.select(1, 1))).div(2) : logits;
  }

  multiplications(): number {
    const { width: d, layers, classes, channels, patchSize } = this.shape;
    const [tokens, patches] = [prefixOf(this.shape), gridOf(this.shape) ** 2];
    return (
      (tokens + patches) * layers * 12 * d * d +
      patches * d * channels * patchSize ** 2 +
      headsOf(this.shape) * d * classes
    );
  }

  /** Weights of another image size fit: their position embeddings are interpolated. */
  adapts(parameter: string, shape: readonly number[]): boolean {
    const [one, tokens, width] = shape;
    const patches = Math.sqrt((tokens ?? 0) - prefixOf(this.shape));
    const positions = parameter === "pos_embed" && shape.length === 3 && one === 1 && width === this.shape.width;
    return positions && patches > 0 && Number.isInteger(patches);
  }

  adapted(_: string, stored: Tensor): Tensor {
    return interpolatePositions(stored.to("f32"), { prefix: prefixOf(this.shape), grid: gridOf(this.shape) });
  }

  /** This model for another image size: a copy of the weights, with interpolated position embeddings. */
  resized(imageSize: number): Vit {
    const model = new Vit({ ...this.shape, imageSize });
    const weights = new Map(this.namedParameters());
    const { device } = this;
    model.to({ device });
    noGrad(() =>
      scope(() => {
        for (const [name, parameter] of model.namedParameters()) {
          const own = weights.get(name)!;
          parameter.copy_(name === "pos_embed" ? model.adapted(name, own) : own);
        }
      }),
    );
    return model;
  }

  get config(): HuggingFaceConfig {
    return toConfig(this.shape);
  }

  get basePrefix(): string {
    return basePrefixOf(this.shape);
  }

  /** transformers' names. Files may also have timm's, which are the names here. */
  storedAs(parameter: string): readonly string[] {
    return storedAs(parameter, this.shape);
  }

  alsoStoredAs(parameter: string): readonly string[] | undefined {
    return inMemory(parameter, this.shape);
  }

  protected get device(): string {
    return this.posEmbed.device;
  }

  /** Matrices from N(0, 0.02²), biases 0, as timm; the patches' filters keep PyTorch's. */
  private initialise(): void {
    noGrad(() => {
      for (const [name, parameter] of this.namedParameters()) {
        if (name.startsWith("patch_embed.")) continue;
        if (parameter.shape.length === 2) parameter.normal_({ std: 0.02 });
        else if (parameter.role === "vector") parameter.zero_();
      }
    });
  }
}
