/** Names in the files of transformers' ViT and DeiT, which stores query, key and value apart. Here they are timm's. */
import type { VitShape } from "./options.ts";

const outside = {
  cls_token: "embeddings.cls_token",
  dist_token: "embeddings.distillation_token",
  pos_embed: "embeddings.position_embeddings",
  "patch_embed.proj": "embeddings.patch_embeddings.projection",
  norm: "layernorm",
};

const inBlock: Readonly<Record<string, readonly string[]>> = {
  norm1: ["layernorm_before"],
  "attn.qkv": ["attention.attention.query", "attention.attention.key", "attention.attention.value"],
  "attn.proj": ["attention.output.dense"],
  norm2: ["layernorm_after"],
  "mlp.fc1": ["intermediate.dense"],
  "mlp.fc2": ["output.dense"],
};

/** What files of transformers' model without a head leave out in front of their names. */
export const prefixOfNames = ({ distilled }: VitShape): string => (distilled ? "deit." : "vit.");

export function storedAs(parameter: string, shape: VitShape): readonly string[] {
  const prefix = prefixOfNames(shape);
  const [, layer, part, kind] = /^blocks\.(\d+)\.(.+)\.(\w+)$/.exec(parameter) ?? [];
  if (part !== undefined) return inBlock[part]!.map((each) => `${prefix}encoder.layer.${layer}.${each}.${kind}`);
  const [, head, of] = /^(head|head_dist)\.(\w+)$/.exec(parameter) ?? [];
  const classToken = shape.distilled && shape.distillationHead ? "cls_" : "";
  if (head) return [`${head === "head" ? classToken : "distillation_"}classifier.${of}`];
  const [own, theirs] = Object.entries(outside).find(([own]) => parameter === own || parameter.startsWith(`${own}.`))!;
  return [prefix + parameter.replace(own, theirs)];
}
