export { Gpt } from "./gpt/gpt.ts";
export { type GptOptions, type GptShape, gptOptions, gptPresets } from "./gpt/options.ts";
