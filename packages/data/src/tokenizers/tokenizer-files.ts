/** The files with which transformers' AutoTokenizer opens a tokenizer, by their names. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ProcessorFiles } from "../dataset.ts";
import { jsonFile } from "./json-file.ts";
import { namedJson } from "./named-json.ts";
import { contentOf, type TokenizerJson } from "./tokenizer-json.ts";
import { bertContents, bertTokens } from "./tokenizers.ts";

const configFile = "tokenizer_config.json";

/**
 * The files tokenizer.json and tokenizer_config.json of "bytes", of "gpt2", or of the tokenizer.json at a path. With
 * `bert`, texts get the tokens that BERT adds: [CLS] A [SEP], [CLS] A [SEP] B [SEP]. `endOfText` is their eos_token.
 * Throws `DataError`.
 */
export async function tokenizerFiles(
  name: string,
  { bert = false, endOfText: named }: { bert?: boolean; endOfText?: string | undefined } = {},
): Promise<ProcessorFiles> {
  const { path, json, end } = await namedJson(name);
  const files = { "tokenizer.json": text(bert ? withBertTokens(json, name) : json) };
  const given = path === undefined ? undefined : join(dirname(path), configFile);
  if (given !== undefined && existsSync(given)) {
    const config = jsonFile(given);
    const changed = () => text({ ...(config.json as object), eos_token: named });
    return { ...files, [configFile]: named === undefined ? config.text : changed() };
  }
  const id = end();
  const eos = named ?? (id === undefined ? undefined : contentOf(json, id));
  const special = bert ? ofBert : eos === undefined ? {} : { bos_token: eos, eos_token: eos };
  return { ...files, [configFile]: text({ tokenizer_class: "PreTrainedTokenizerFast", ...special }) };
}

const ofBert = {
  cls_token: bertContents.classify,
  sep_token: bertContents.separate,
  mask_token: bertContents.mask,
  pad_token: bertContents.pad,
  model_input_names: ["input_ids", "token_type_ids", "attention_mask"],
};

const text = (content: object) => `${JSON.stringify(content, null, 2)}\n`;

function withBertTokens(json: TokenizerJson, name: string): TokenizerJson {
  const ids = bertTokens(name);
  const kinds = Object.entries(bertContents) as [keyof typeof bertContents, string][];
  const absent = kinds.filter(([, content]) => !json.added_tokens?.some((token) => token.content === content));
  const whole = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  const added = absent.map(([kind, content]) => ({ id: ids[kind], content, ...whole }));
  const sequence = (id: string, type_id: number) => ({ Sequence: { id, type_id } });
  const special = (kind: "classify" | "separate", type_id: number) => ({
    SpecialToken: { id: bertContents[kind], type_id },
  });
  const single = [special("classify", 0), sequence("A", 0), special("separate", 0)];
  const known = (["classify", "separate"] as const).map((kind) => {
    const id = bertContents[kind];
    return [id, { id, ids: [ids[kind]], tokens: [id] }];
  });
  return {
    ...json,
    added_tokens: [...(json.added_tokens ?? []), ...added],
    post_processor: {
      type: "TemplateProcessing",
      single,
      pair: [...single, sequence("B", 1), special("separate", 1)],
      special_tokens: Object.fromEntries(known),
    },
  };
}
