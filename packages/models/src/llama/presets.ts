import type { LlamaShape } from "./options.ts";
import type { RopeScaling } from "./rope-scaling.ts";

const common = {
  architecture: "llama",
  attentionBias: false,
  mlpBias: false,
  window: null,
  fullLayers: 0,
  attentionDropout: 0,
  eps: 1e-5,
  ropeTheta: 10000,
  ropeScaling: { name: "default" },
  padding: null,
} as const;

const ofBytes = { ...common, vocabulary: 256, context: 128, tied: false };
const smol = { ...common, vocabulary: 49152, context: 2048, headWidth: 64, tied: true };
const smol135m = { ...smol, width: 576, heads: 9, keyValueHeads: 3, layers: 30, hidden: 1536 };
const llama2 = { ...common, vocabulary: 32000, tied: false };
const llama3 = { ...common, vocabulary: 128256, context: 131072, keyValueHeads: 8, ropeTheta: 500000 };
const stretched = (factor: number): RopeScaling => ({
  name: "llama3",
  factor,
  lowFrequencyFactor: 1,
  highFrequencyFactor: 4,
  originalContext: 8192,
});
const llama32 = { ...llama3, hidden: 8192, tied: true, ropeScaling: stretched(32) };
const qwen = { ...common, vocabulary: 151936, tied: true, eps: 1e-6, ropeTheta: 1e6 };
const qwen2 = { ...qwen, architecture: "qwen2", keyValueHeads: 2 } as const;
const qwen3 = { ...qwen, architecture: "qwen3", context: 40960, keyValueHeads: 8 } as const;
const ofBillions = { width: 4096, heads: 32, headWidth: 128, layers: 32 };

/** Sizes by the names that their weights have at Hugging Face; the first two suit byte tokens and few cores. */
export const llamaPresets = {
  tiny: { ...ofBytes, width: 64, heads: 4, keyValueHeads: 2, headWidth: 16, layers: 2, hidden: 192 },
  small: { ...ofBytes, width: 256, heads: 4, keyValueHeads: 2, headWidth: 64, layers: 5, hidden: 704 },
  "smollm-135m": smol135m,
  "smollm-360m": { ...smol, width: 960, heads: 15, keyValueHeads: 5, layers: 32, hidden: 2560 },
  "smollm-1.7b": { ...smol, width: 2048, heads: 32, keyValueHeads: 32, layers: 24, hidden: 8192 },
  "smollm2-135m": { ...smol135m, context: 8192, ropeTheta: 100000 },
  "tinyllama-1.1b": {
    ...llama2,
    context: 2048,
    width: 2048,
    heads: 32,
    keyValueHeads: 4,
    headWidth: 64,
    layers: 22,
    hidden: 5632,
  },
  "llama-2-7b": { ...llama2, ...ofBillions, context: 4096, keyValueHeads: 32, hidden: 11008 },
  "llama-3.1-8b": { ...llama3, ...ofBillions, hidden: 14336, tied: false, ropeScaling: stretched(8) },
  "llama-3.2-1b": { ...llama32, width: 2048, heads: 32, headWidth: 64, layers: 16 },
  "llama-3.2-3b": { ...llama32, width: 3072, heads: 24, headWidth: 128, layers: 28 },
  "mistral-7b": {
    ...llama2,
    ...ofBillions,
    architecture: "mistral",
    context: 32768,
    keyValueHeads: 8,
    hidden: 14336,
    window: 4096,
  },
  "qwen2.5-0.5b": { ...qwen2, context: 32768, width: 896, heads: 14, headWidth: 64, layers: 24, hidden: 4864 },
  "qwen2.5-1.5b": { ...qwen2, context: 131072, width: 1536, heads: 12, headWidth: 128, layers: 28, hidden: 8960 },
  "qwen3-0.6b": { ...qwen3, width: 1024, heads: 16, headWidth: 128, layers: 28, hidden: 3072 },
} satisfies Record<string, LlamaShape>;
