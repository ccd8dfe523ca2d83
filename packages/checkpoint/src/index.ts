/** Checkpoints that other frameworks can read, written completely or not at all. */
export { type AdapterFiles, adapterConfigFile, hasAdapter, saveAdapter } from "./adapter-files.ts";
export { allFinite } from "./all-finite.ts";
export { atomicWrite, atomicWriteText, renameFolder, writeAll } from "./atomic-write.ts";
export { checkFile, recordOf } from "./check-file.ts";
export { CheckpointError, cannot, inWords, OutOfReachError, reasonOf } from "./checkpoint-error.ts";
export { type Config, configFile, loadConfig } from "./config-file.ts";
export { type DType, elements, type TypedArray } from "./dtypes.ts";
export { fileInside } from "./file-inside.ts";
export type { FileRecord } from "./file-record.ts";
export { isObject, parsedJson } from "./json.ts";
export { type ForeignWeights, loadModel } from "./load-model.ts";
export { loadWeights } from "./load-weights.ts";
export {
  isRunning,
  type LockHolder,
  type LockState,
  LockWatch,
  lockChangesEverySeconds,
  lockSilentAfterSeconds,
  thisProcess,
} from "./lock-holder.ts";
export { makeFolder } from "./make-folder.ts";
export { type Manifest, manifestFile, parseManifest, readManifestText, writeManifest } from "./manifest.ts";
export { mayExist } from "./may-exist.ts";
export { misfits } from "./misfits.ts";
export type { NamesInFiles, PartOf } from "./names-in-files.ts";
export { pickledWeights } from "./pickled-weights.ts";
export { openRegular, readRegularText, readSmallText } from "./regular-file.ts";
export {
  openSafetensors,
  readSafetensors,
  SafetensorsFile,
  type StoredTensor,
  type TensorInParts,
  type TensorSource,
  type Tensors,
  type WritableTensor,
  writeSafetensors,
} from "./safetensors.ts";
export type { Header, TensorInfo } from "./safetensors-header.ts";
export { type SaveOptions, saveModel } from "./save-model.ts";
export { differingCopy, type ForeignNames, type ParameterShape, storedElements } from "./stored-for-model.ts";
export {
  adapterFile,
  filesOfWeights,
  hasWeights,
  indexFile,
  openWeights,
  type Weights,
  weightsFile,
} from "./weights.ts";
