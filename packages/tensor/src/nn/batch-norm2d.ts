import { checkOptions } from "@terse/native-tensor";
import { call } from "../call.ts";
import { ones, zeros } from "../factories.ts";
import { scope } from "../lifetime.ts";
import { noGrad } from "../no-grad.ts";
import type { Tensor } from "../tensor.ts";
import { Buffer } from "./buffer.ts";
import { createParameter } from "./create-parameter.ts";
import { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";

export interface RunningStatistics {
  readonly mean: Tensor; // (C)
  readonly variance: Tensor; // (C), unbiased
}

export interface BatchNormalisation {
  weight?: Tensor | null; // γ (C)
  bias?: Tensor | null; // β (C)
  training?: boolean; // statistics of the batch, which then also go into `running`
  momentum?: number;
  eps?: number;
}

/**
 * For each channel of x (B, C, …):
 *
 *   (x − mean) / √(var + ε) ⊙ γ + β
 *
 * Mean and variance are the batch's in training, or without running statistics; otherwise the running ones.
 * In training:  running ← (1 − momentum) running + momentum · the batch's
 */
export function batchNorm(
  x: Tensor,
  running: RunningStatistics | null,
  { weight, bias, training = false, momentum = 0.1, eps = 1e-5 }: BatchNormalisation = {},
): Tensor {
  const ofBatch = training || running === null;
  const statistics = [running?.mean, running?.variance];
  return call("aten::batch_norm", x, weight, bias, ...statistics, ofBatch, momentum, eps, true);
}

/**
 * Batch normalisation of images, Ioffe and Szegedy 2015, https://arxiv.org/abs/1502.03167.
 *
 *   x (B, C, H, W)   γ, β (C), initialised to ones and zeros
 *
 * The running statistics are those of the batches that this process has seen.
 */
export class BatchNorm2d extends Module {
  readonly weight: Parameter | null;
  readonly bias: Parameter | null;
  readonly runningMean: Buffer | null;
  readonly runningVar: Buffer | null;
  readonly numBatchesTracked: Buffer | null; // () i64
  readonly eps: number;
  readonly momentum: number | null;
  /** The running statistics are used in training too, and stay as they are. */
  frozen = false;

  constructor(channels: number, options: BatchNormOptions = {}) {
    super();
    checkOptions("BatchNorm2d", options, ["eps", "momentum", "affine", "trackRunningStats"]);
    const { eps = 1e-5, momentum = 0.1, affine = true, trackRunningStats = true } = options;
    this.weight = affine ? createParameter([channels], "norm", (γ) => γ.fill_(1)) : null;
    this.bias = affine ? createParameter([channels], "norm", (β) => β.zero_()) : null;
    const buffer = (make: () => Tensor) => (trackRunningStats ? scope(() => new Buffer(make())) : null);
    this.runningMean = buffer(() => zeros([channels]));
    this.runningVar = buffer(() => ones([channels]));
    this.numBatchesTracked = buffer(() => zeros([], { dtype: "i64" }));
    this.eps = eps;
    this.momentum = momentum;
  }

  override train(training = true): this {
    return super.train(training && !this.frozen);
  }

  forward(x: Tensor): Tensor {
    if (x.shape.length !== 4)
      throw new RangeError(`BatchNorm2d: needs images of shape (B, C, H, W), got [${x.shape.join(", ")}]`);
    const { weight, bias, training, momentum, eps } = this;
    if (training) noGrad(() => this.numBatchesTracked?.add_(1));
    const running = this.runningMean && { mean: this.runningMean, variance: this.runningVar! };
    const share = momentum ?? 1 / Math.max(this.numBatchesTracked?.item() ?? 1, 1);
    return batchNorm(x, running, { weight, bias, training, momentum: share, eps });
  }
}

export interface BatchNormOptions {
  eps?: number;
  // Share of the newest batch in the running statistics; null: they are the means of all batches.
  momentum?: number | null;
  affine?: boolean; // whether there are γ and β
  trackRunningStats?: boolean; // false: the statistics of the batch in evaluation too
}
