/** Checkpoints that other frameworks can read, written completely or not at all. */
export { atomicWrite, atomicWriteText, writeAll } from "./atomic-write.ts";
export { CheckpointError } from "./checkpoint-error.ts";
export type { DType, TypedArray } from "./dtypes.ts";
export { loadModel } from "./load-model.ts";
export { type Config, loadConfig, loadWeights, type ParameterShape, saveModel } from "./model-folder.ts";
export {
  openSafetensors,
  readSafetensors,
  SafetensorsFile,
  type StoredTensor,
  type TensorSource,
  type Tensors,
  writeSafetensors,
} from "./safetensors.ts";
export type { Header, TensorInfo } from "./safetensors-header.ts";
