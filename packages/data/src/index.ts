/** Batches of text, tokens and images. One seed gives the same rows on every machine and for any number of ranks. */
export type { Batch, ImageBatch, LabelledTextBatch, MaskedTextBatch, TextBatch } from "./batch.ts";
export { type ChatPrompt, chatPrompt } from "./chat/chat-prompt.ts";
export { type LookedRow, lookAtChat } from "./chat/look-at-chat.ts";
export type { ChatRowOptions } from "./chat/read-chat-rows.ts";
export { checkSkipped } from "./check-skipped.ts";
export { DataError } from "./data-error.ts";
export type { DataFacts, Dataset, DatasetEntry, DatasetState, OpenOptions, TextContext, Tokenizer } from "./dataset.ts";
export { type DatasetName, datasets } from "./datasets.ts";
export type { FileGroup, Inventory } from "./inventory.ts";
export { fetchSource, type Progress } from "./prepare/fetch-source.ts";
export { type PrepareRowsOptions, prepareRows, type WrittenRows } from "./prepare/prepare-rows.ts";
export { type PreparedTokens, type PrepareOptions, prepareTokens } from "./prepare/prepare-tokens.ts";
export { type PublishedData, type Source, type SourceName, sources } from "./prepare/sources.ts";
export { hasColumns } from "./text/text-files.ts";
export { type DeclarationOptions, typescriptDeclarations } from "./text/typescript-declarations.ts";
export { byteTokenizer } from "./tokenizers/byte-tokenizer.ts";
export { openTokenizer } from "./tokenizers/tokenizers.ts";
export { withoutEnd } from "./tokens/tokenized-text.ts";
