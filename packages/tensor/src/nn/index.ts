export { GELU, ReLU } from "./activations.ts";
export { AdaptableLayer, LayerAdapter } from "./adaptable-layer.ts";
export {
  BatchNorm2d,
  type BatchNormalisation,
  type BatchNormOptions,
  batchNorm,
  type RunningStatistics,
} from "./batch-norm2d.ts";
export { Buffer } from "./buffer.ts";
export { causalAttention, KeyValueCache } from "./causal-attention.ts";
export { causalMask } from "./causal-mask.ts";
export { CausalSelfAttention } from "./causal-self-attention.ts";
export { Conv2d, type ConvolutionLayerOptions, type ConvolutionOptions, conv2d } from "./conv2d.ts";
export { createdIn, createParameter } from "./create-parameter.ts";
export { type CrossEntropyOptions, crossEntropy } from "./cross-entropy.ts";
export { Dropout, dropout } from "./dropout.ts";
export { Embedding, type EmbeddingOptions, embedding } from "./embedding.ts";
export { GroupNorm, groupNorm } from "./group-norm.ts";
export { joinHeads, splitHeads } from "./heads.ts";
export { LayerNorm, layerNorm } from "./layer-norm.ts";
export { Linear, linear } from "./linear.ts";
export { Module } from "./module.ts";
export { ModuleList } from "./module-list.ts";
export { packedMask } from "./packed-mask.ts";
export type { Pair } from "./pair.ts";
export { Parameter, type Role, roles } from "./parameter.ts";
export {
  AdaptiveAvgPool2d,
  AvgPool2d,
  type AvgPoolingOptions,
  adaptiveAvgPool2d,
  avgPool2d,
  MaxPool2d,
  type MaxPoolingOptions,
  maxPool2d,
  type PoolingOptions,
} from "./pooling.ts";
export { RMSNorm, rmsNorm } from "./rms-norm.ts";
export { type Rotation, rotate } from "./rotary-embedding.ts";
export { type AttentionOptions, scaledDotProductAttention } from "./scaled-dot-product-attention.ts";
export { type Layer, Sequential } from "./sequential.ts";
export { swiglu } from "./swiglu.ts";
