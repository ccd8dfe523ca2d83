/** Pooling of images: x (B, C, H, W) → (B, C′, H′, W′). As in PyTorch, the stride is the window's size by default. */
import { checkOptions } from "@terse/native-tensor";
import { call } from "../call.ts";
import type { Tensor } from "../tensor.ts";
import { Module } from "./module.ts";
import { type Pair, pair } from "./pair.ts";

export interface PoolingOptions {
  stride?: Pair;
  padding?: Pair;
  ceilMode?: boolean; // whether a last window that leaves the image counts
}

export interface MaxPoolingOptions extends PoolingOptions {
  dilation?: Pair; // distance between the points of a window
}

export interface AvgPoolingOptions extends PoolingOptions {
  countIncludePad?: boolean; // whether the padding's zeros count in the mean
  divisorOverride?: number | null; // divides the sum of a window, whatever its size
}

const checkMax = (where: string, options: MaxPoolingOptions) =>
  checkOptions(where, options, ["stride", "padding", "ceilMode", "dilation"]);
const checkAverage = (where: string, options: AvgPoolingOptions) =>
  checkOptions(where, options, ["stride", "padding", "ceilMode", "countIncludePad", "divisorOverride"]);

/** The maximum of each window. */
export function maxPool2d(x: Tensor, kernelSize: Pair, options: MaxPoolingOptions = {}): Tensor {
  checkMax("maxPool2d", options);
  const { stride = kernelSize, padding = 0, dilation = 1, ceilMode = false } = options;
  const window = [kernelSize, stride, padding, dilation].map(pair);
  return call("aten::max_pool2d", x, ...window, ceilMode);
}

/** The mean of each window. */
export function avgPool2d(x: Tensor, kernelSize: Pair, options: AvgPoolingOptions = {}): Tensor {
  checkAverage("avgPool2d", options);
  const {
    stride = kernelSize,
    padding = 0,
    ceilMode = false,
    countIncludePad = true,
    divisorOverride = null,
  } = options;
  const window = [kernelSize, stride, padding].map(pair);
  return call("aten::avg_pool2d", x, ...window, ceilMode, countIncludePad, divisorOverride);
}

/** Means of windows that cover the image evenly, so many that the result has this size. */
export function adaptiveAvgPool2d(x: Tensor, outputSize: Pair): Tensor {
  return call("aten::adaptive_avg_pool2d", x, pair(outputSize));
}

export class MaxPool2d extends Module {
  readonly kernelSize: Pair;
  readonly options: MaxPoolingOptions;

  constructor(kernelSize: Pair, options: MaxPoolingOptions = {}) {
    super();
    checkMax("MaxPool2d", options);
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return maxPool2d(x, this.kernelSize, this.options);
  }
}

export class AvgPool2d extends Module {
  readonly kernelSize: Pair;
  readonly options: AvgPoolingOptions;

  constructor(kernelSize: Pair, options: AvgPoolingOptions = {}) {
    super();
    checkAverage("AvgPool2d", options);
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return avgPool2d(x, this.kernelSize, this.options);
  }
}

export class AdaptiveAvgPool2d extends Module {
  readonly outputSize: Pair;

  constructor(outputSize: Pair) {
    super();
    this.outputSize = outputSize;
  }

  forward(x: Tensor): Tensor {
    return adaptiveAvgPool2d(x, this.outputSize);
  }
}
