export { Gpt } from "./gpt/gpt.ts";
export { type GptOptions, type GptShape, gptOptions, gptPresets } from "./gpt/options.ts";
export { continuesText, type DataFacts, type Model, type ModelEntry, type TextModel } from "./model.ts";
export { countParameters, type ModelName, models, restoreModel } from "./models.ts";
