/** Batches of text. For one seed the tokens are the same on every machine and for any number of ranks. */
export type { Batch, TextBatch } from "./batch.ts";
export { byteTokenizer } from "./byte-tokenizer.ts";
export { DataError } from "./data-error.ts";
export type { DataFacts, Dataset, DatasetEntry, DatasetState, OpenOptions, Tokenizer } from "./dataset.ts";
export { type DatasetName, datasets } from "./datasets.ts";
export { type SplitText, splitText } from "./split-text.ts";
export { type TextOptions, textBytes, textFiles } from "./text-bytes.ts";
export { TextData, type TextDataOptions, type TextDataState, textData, textDataOptions } from "./text-data.ts";
export { type DeclarationOptions, installationRoot, typescriptDeclarations } from "./typescript-declarations.ts";
