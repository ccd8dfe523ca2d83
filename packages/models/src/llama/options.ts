import { flag, nonNegativeInteger, oneOf, positive, positiveInteger, unitInterval, v } from "@terse/options";
import { layerCount } from "../layer-count.ts";
import { ropeScaling } from "./rope-scaling.ts";

/** The models of this family, by their `model_type` in transformers. */
export const llamaArchitectures = ["llama", "mistral", "qwen2", "qwen3"] as const;

export type LlamaArchitecture = (typeof llamaArchitectures)[number];

/** What only some architectures can have, by the option that asks for it. */
const onlyOf: Readonly<Record<string, readonly LlamaArchitecture[]>> = {
  attentionBias: ["llama", "qwen3"],
  mlpBias: ["llama"],
  window: ["mistral", "qwen2", "qwen3"],
  fullLayers: ["qwen2", "qwen3"],
};

const entries = {
  // The class of transformers: mistral can have a window, qwen2 has biases of q, k and v, qwen3 norms of q and k.
  architecture: v.optional(oneOf(llamaArchitectures), "llama"),
  vocabulary: v.optional(positiveInteger, 49152), // V
  context: v.optional(positiveInteger, 2048), // maximum T
  width: v.optional(positiveInteger, 576), // d
  heads: v.optional(positiveInteger, 9), // h, of queries
  keyValueHeads: v.optional(positiveInteger), // g, of keys and values, each for h/g queries; h if absent
  headWidth: v.optional(positiveInteger), // e; d/h if absent
  layers: v.optional(layerCount, 30),
  hidden: v.optional(positiveInteger, 1536), // of the MLPs
  tied: v.optional(flag, true), // whether the embedding is also the output head
  attentionBias: v.optional(flag, false), // of q, k, v and the output of attention
  mlpBias: v.optional(flag, false),
  window: v.optional(v.nullable(positiveInteger), null), // positions that one attends to, itself among them; null: all
  fullLayers: v.optional(nonNegativeInteger, 0), // the first layers, which have no window
  attentionDropout: v.optional(unitInterval, 0),
  eps: v.optional(positive, 1e-5), // of the norms
  ropeTheta: v.optional(positive, 10000), // θ of the rotary embeddings
  padding: v.optional(v.nullable(nonNegativeInteger), null), // this token's embedding gets no gradient
  ropeScaling: v.optional(ropeScaling, { name: "default" }),
};

type Given = v.InferOutput<v.ObjectSchema<typeof entries, undefined>>;

/** What is wrong with options that are each right, with the option to name. */
function* conflicts(options: Given): Generator<[key: keyof Given, message: string]> {
  const { architecture, width, heads, keyValueHeads = heads, headWidth = width / heads } = options;
  if (!Number.isInteger(headWidth)) yield ["heads", `${heads} does not divide width, ${width}; give headWidth too`];
  else if (headWidth % 2 !== 0)
    yield ["headWidth", `${headWidth} is odd, and rotary embeddings turn pairs of dimensions`];
  if (heads % keyValueHeads !== 0) yield ["keyValueHeads", `${keyValueHeads} does not divide heads, ${heads}`];
  for (const [key, architectures] of Object.entries(onlyOf))
    if (options[key as keyof Given] && !architectures.includes(architecture))
      yield [key as keyof Given, `only ${architectures.join(", ")} can have it, and architecture is ${architecture}`];
  if (options.padding !== null && options.padding >= options.vocabulary)
    yield ["padding", `is ${options.padding}, and tokens are below vocabulary, ${options.vocabulary}`];
}

/** The schema of Llama's options; the defaults are those of SmolLM-135M. */
export const llamaOptions = v.pipe(
  v.object(entries),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    for (const [key, message] of conflicts(dataset.value)) {
      const value = dataset.value[key];
      addIssue({ message, path: [{ type: "object", origin: "value", input: { ...dataset.value }, key, value }] });
    }
  }),
  v.transform(({ keyValueHeads, headWidth, ...given }) => ({
    ...given,
    keyValueHeads: keyValueHeads ?? given.heads,
    headWidth: headWidth ?? given.width / given.heads,
  })),
);

/** The options of Llama; all have defaults. */
export type LlamaOptions = v.InferInput<typeof llamaOptions>;
/** The options of Llama with every default filled in. */
export type LlamaShape = v.InferOutput<typeof llamaOptions>;
