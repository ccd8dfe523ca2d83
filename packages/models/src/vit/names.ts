/** Names in the files of transformers' ViT and DeiT, which stores query, key and value apart. Here they are timm's. */
import type { VitShape } from "./options.ts";

const outside = {
  cls_token: "embeddings.cls_token",
  dist_token: "embeddings.distillation_token",
  pos_embed: "embeddings.position_embeddings",
  "patch_embed.proj": "embeddings.patch_embeddings.projection",
  norm: "layernorm",
};

type Names = Readonly<Record<string, readonly string[]>>;

const inBlock: Names = {
  norm1: ["layernorm_before"],
  "attn.qkv": ["attention.attention.query", "attention.attention.key", "attention.attention.value"],
  "attn.proj": ["attention.output.dense"],
  norm2: ["layernorm_after"],
  "mlp.fc1": ["intermediate.dense"],
  "mlp.fc2": ["output.dense"],
};

/** The names of transformers 5 in memory: `save_pretrained` writes those above, and `model.state_dict()` has these. */
const inBlockInMemory: Names = {
  norm1: ["layernorm_before"],
  "attn.qkv": ["attention.q_proj", "attention.k_proj", "attention.v_proj"],
  "attn.proj": ["attention.o_proj"],
  norm2: ["layernorm_after"],
  "mlp.fc1": ["mlp.fc1"],
  "mlp.fc2": ["mlp.fc2"],
};

/** The prefix of names that is missing in files of transformers' model without a head. */
export const basePrefixOf = ({ distilled }: VitShape): string => (distilled ? "deit." : "vit.");

export function storedAs(parameter: string, shape: VitShape): readonly string[] {
  const prefix = basePrefixOf(shape);
  const block = inBlocks(parameter, inBlock, `${prefix}encoder.layer.`);
  if (block) return block;
  const [, head, of] = /^(head|head_dist)\.(\w+)$/.exec(parameter) ?? [];
  const classToken = shape.distilled && shape.distillationHead ? "cls_" : "";
  if (head) return [`${head === "head" ? classToken : "distillation_"}classifier.${of}`];
  const [own, theirs] = Object.entries(outside).find(([own]) => parameter === own || parameter.startsWith(`${own}.`))!;
  return [prefix + parameter.replace(own, theirs)];
}

export const inMemory = (parameter: string, shape: VitShape): readonly string[] | undefined =>
  inBlocks(parameter, inBlockInMemory, `${basePrefixOf(shape)}layers.`);

function inBlocks(parameter: string, names: Names, blocks: string): readonly string[] | undefined {
  const [, layer, part, kind] = /^blocks\.(\d+)\.(.+)\.(\w+)$/.exec(parameter) ?? [];
  return part === undefined ? undefined : names[part]!.map((each) => `${blocks}${layer}.${each}.${kind}`);
}
