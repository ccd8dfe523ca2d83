/**
 * The keys of config.json for rotary embeddings: `rope_parameters`, as transformers writes them from version 5 on, or
 * `rope_theta` and `rope_scaling`, which every version reads.
 */
import { OptionsError, positive, v } from "@terse/options";
import { checkedOptions, type HuggingFaceConfig, renamed } from "../hugging-face-config.ts";
import type { LlamaShape } from "./options.ts";
import { type RopeScaling, ropeScaling } from "./rope-scaling.ts";

const defaultTheta = 10000;

const names = {
  factor: "factor",
  lowFrequencyFactor: "low_freq_factor",
  highFrequencyFactor: "high_freq_factor",
  originalContext: "original_max_position_embeddings",
  betaFast: "beta_fast",
  betaSlow: "beta_slow",
  truncate: "truncate",
  attentionFactor: "attention_factor",
};
type Option = keyof typeof names;

/** The options of each kind, besides its name. */
const taken: Readonly<Record<RopeScaling["name"], readonly Option[]>> = {
  default: [],
  linear: ["factor"],
  dynamic: ["factor"],
  llama3: ["factor", "lowFrequencyFactor", "highFrequencyFactor", "originalContext"],
  yarn: ["factor", "originalContext", "betaFast", "betaSlow", "truncate", "attentionFactor"],
};
const isKind = (name: unknown): name is RopeScaling["name"] => typeof name === "string" && Object.hasOwn(taken, name);

export function ropeToConfig({ ropeTheta, ropeScaling: { name, ...options } }: LlamaShape): HuggingFaceConfig {
  const scaling = Object.entries(options).flatMap(([option, value]) =>
    value === undefined ? [] : [[names[option as Option], value]],
  );
  return {
    rope_theta: ropeTheta,
    rope_scaling: name === "default" ? null : { rope_type: name, ...Object.fromEntries(scaling) },
  };
}

/** Throws `OptionsError` that names the key where the model here would compute something else. */
export function ropeFromConfig(
  config: HuggingFaceConfig,
  { context }: { context: number },
): Pick<LlamaShape, "ropeTheta" | "ropeScaling"> {
  const where = config["rope_scaling"] ? "rope_scaling" : "rope_parameters";
  const rope = parametersAt(config, where);
  const name = rope["rope_type"] ?? rope["type"] ?? "default";
  if (!isKind(name))
    throw new OptionsError([
      `${where}.rope_type: is ${JSON.stringify(name)}, and only ${Object.keys(taken).join(", ")} is known here; use other weights`,
    ]);
  const isTaken = (option: Option) => taken[name].includes(option);
  const found = Object.entries(renamed(rope, names)).filter(([option]) => isTaken(option as Option));
  const { originalContext = context, ...others } = Object.fromEntries(found);
  const before = config["original_max_position_embeddings"] ?? originalContext;
  const scaling = {
    name,
    ...others,
    ...(isTaken("originalContext") && { originalContext: before }),
    ...(name === "yarn" && yarnFactors(rope, context / Number(before))),
  };
  const theta = { ropeTheta: rope["rope_theta"] ?? config["rope_theta"] ?? defaultTheta };
  const paths = Object.fromEntries(Object.entries(names).map(([option, key]) => [option, `${where}.${key}`]));
  return {
    ...checkedOptions(v.object({ ropeTheta: positive }), theta, { ropeTheta: "rope_theta" }),
    ropeScaling: checkedOptions(ropeScaling, scaling, paths),
  };
}

function parametersAt(config: HuggingFaceConfig, where: string): HuggingFaceConfig {
  const given = config[where] ?? {};
  if (typeof given !== "object" || Array.isArray(given))
    throw new OptionsError([`${where}: expected an object with rope_type, got ${JSON.stringify(given)}`]);
  const rope = given as HuggingFaceConfig;
  const perLayer = Object.keys(rope).find((key) => key.endsWith("_attention"));
  if (perLayer !== undefined)
    throw new OptionsError([
      `${where}.${perLayer}: only the same rotary embeddings in all layers are known here; use other weights`,
    ]);
  const partial = rope["partial_rotary_factor"] ?? config["partial_rotary_factor"] ?? 1;
  if (partial !== 1)
    throw new OptionsError([
      `partial_rotary_factor: is ${JSON.stringify(partial)}, and only 1 is known here; use other weights`,
    ]);
  return rope;
}

/** What YaRN's options come to, where a config leaves them out. Peng et al. 2023, §3.4; `mscale` is DeepSeek's. */
function yarnFactors(rope: HuggingFaceConfig, longer: number): { factor: unknown; attentionFactor: unknown } {
  const { factor, attention_factor: given, mscale, mscale_all_dim: mscaleOfAll } = rope;
  const stretched = Number(factor ?? longer);
  const of = (mscale: unknown) => (stretched <= 1 ? 1 : 0.1 * Number(mscale) * Math.log(stretched) + 1);
  return {
    factor: factor ?? longer,
    attentionFactor: given ?? (mscale && mscaleOfAll ? of(mscale) / of(mscaleOfAll) : of(1)),
  };
}
