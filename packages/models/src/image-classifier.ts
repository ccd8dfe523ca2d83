import { crossEntropy, Module, scope, type Tensor } from "@terse/tensor";
import type { Model } from "./model.ts";
import { toDevice } from "./to-device.ts";

export interface ImagesAndLabels {
  readonly images: Tensor; // (B, C, H, W) f32
  readonly labels: Tensor; // (B) i64, or (B, K) f32: the share of each class, as Mixup makes it
}

/** What models of images with K classes have in common: the loss and the metrics of their logits. */
export abstract class ImageClassifier extends Module implements Model {
  abstract readonly config: object;
  abstract readonly shape: { readonly labelSmoothing: number };
  /** The device of the weights. */
  protected abstract readonly device: string;

  /** images (B, C, H, W) → logits (B, K) */
  abstract forward(images: Tensor): Tensor;

  /** Mean cross entropy, in nats; in training with smoothed labels, if the config says so. */
  loss({ images, labels }: ImagesAndLabels): Tensor {
    return scope(() => this.#lossOf(this.#logits(images), labels));
  }

  metrics({ images, labels }: ImagesAndLabels): { loss: Tensor; accuracy: Tensor } {
    const logits = this.#logits(images);
    const right = logits.argmax(1).eq(toDevice(this.device, labels));
    return { loss: this.#lossOf(logits, labels), accuracy: right.to("f32").mean() };
  }

  metricUnits(unit: string): { loss: string; accuracy: string } {
    return { loss: `nats per ${unit}`, accuracy: `of ${unit}s` };
  }

  #logits(images: Tensor): Tensor {
    return this.forward(toDevice(this.device, images));
  }

  #lossOf(logits: Tensor, labels: Tensor): Tensor {
    const { labelSmoothing } = this.shape;
    return crossEntropy(logits, toDevice(this.device, labels), {
      labelSmoothing: this.training ? labelSmoothing : 0, // the loss of held-out data is comparable between runs
    });
  }
}
