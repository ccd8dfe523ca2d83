/** PEFT's adapter_config.json: what it says of an adapter, and what ours say for PEFT. */
import { OptionsError, parseOptions } from "@terse/options";
import type { Model } from "../model.ts";
import { endsIn, layersOf } from "./find-targets.ts";
import { type Lora, prefix } from "./lora.ts";
import { allLinear, type LoraOptions, loraOptions } from "./options.ts";

type Config = Readonly<Record<string, unknown>>;

/** Keys that are read here, and those that change nothing of what a saved adapter computes. */
const known = [
  ...["peft_type", "r", "lora_alpha", "use_rslora", "lora_dropout", "target_modules", "modules_to_save", "bias"],
  ...["layers_to_transform", "layers_pattern", "exclude_modules", "init_lora_weights", "base_model_name_or_path"],
  ...["task_type", "inference_mode", "fan_in_fan_out", "auto_mapping", "revision", "peft_version", "runtime_config"],
  ...["megatron_core", "qalora_group_size", "eva_config", "corda_config", "loftq_config", "lora_ga_config"],
];
/** The initial values that leave the base as it is; others change its weights. */
const initialValues: readonly unknown[] = [undefined, null, true, false, "gaussian", "eva", "orthogonal"];

const isEmpty = (value: unknown) =>
  value === undefined || value === false || (typeof value === "object" && Object.keys(value ?? {}).length === 0);

/**
 * The options of an adapter that PEFT, or a run here, has saved: its config, and the names of the tensors beside it.
 * Throws `OptionsError` that names the key where the adapter is none that is computed here.
 */
export function readPeftConfig(config: Config, tensors: Iterable<string>): LoraOptions {
  const { peft_type, bias, init_lora_weights } = config;
  const shown = (value: unknown) => JSON.stringify(value) ?? "absent";
  const problems: string[] = [];
  if (peft_type !== "LORA")
    throw new OptionsError([`peft_type: is ${shown(peft_type)}, and only LORA is known here; use another adapter`]);
  for (const [key, value] of Object.entries(config))
    if (!known.includes(key) && !isEmpty(value))
      problems.push(`${key}: is ${shown(value)}, which is not computed here`);
  if (!isEmpty(bias) && bias !== "none") problems.push(`bias: is ${shown(bias)}, and only none is known here`);
  if (!initialValues.includes(init_lora_weights))
    problems.push(
      `init_lora_weights: is ${shown(init_lora_weights)}, which changes the base; convert the adapter with PEFT's path_initial_model_for_weight_conversion`,
    );
  if (problems.length > 0) throw new OptionsError(problems);
  const { r, lora_alpha, use_rslora, lora_dropout } = config;
  const names = [...tensors].flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []));
  return parseOptions(
    loraOptions,
    {
      rank: r,
      alpha: lora_alpha,
      rslora: use_rslora ?? undefined,
      dropout: lora_dropout ?? undefined,
      targets: targetsOf(config, names),
      modulesToSave: savedModulesOf(config, names),
    },
    "adapter",
  );
}

const ofA = ".lora_A.weight";

/**
 * PEFT's words for the targets that the adapter has, or the names of all modules where other keys choose among them.
 * PEFT leaves words alone that match nothing.
 */
function targetsOf(config: Config, tensors: readonly string[]): unknown {
  const { target_modules: words, layers_to_transform, exclude_modules } = config;
  const modules = tensors.flatMap((name) => (name.endsWith(ofA) ? [name.slice(0, -ofA.length)] : []));
  const isPlain = isEmpty(layers_to_transform) && isEmpty(exclude_modules);
  if (isPlain && words === allLinear) return words;
  if (!isPlain || !Array.isArray(words)) return modules;
  const matching = words.filter((word) => typeof word !== "string" || modules.some((name) => endsIn(name, word)));
  return matching.length > 0 ? matching : words;
}

/**
 * The words for modules that are trained whole, of those that the adapter has. PEFT takes every module whose name ends
 * in a word's letters, such as input_layernorm for norm: then the names of the modules stand for it.
 */
function savedModulesOf({ modules_to_save: words }: Config, tensors: readonly string[]): unknown {
  if (!Array.isArray(words)) return words ?? undefined;
  const modules = tensors.flatMap((name) => (/\.lora_/.test(name) ? [] : [name.replace(/\.[^.]+$/, "")]));
  return words.flatMap((word) => {
    if (typeof word !== "string") return [word];
    const taken = modules.filter((name) => isSavedByPeft(name, word));
    return taken.every((name) => hasWord(name, word)) ? (taken.length > 0 ? [word] : []) : [...new Set(taken)];
  });
}

/** Whether the module, or one that it is in, has a name that ends in these letters: PEFT's rule of modules_to_save. */
const isSavedByPeft = (module: string, letters: string) =>
  module.split(".").some((_, i, parts) =>
    parts
      .slice(0, i + 1)
      .join(".")
      .endsWith(letters),
  );
const hasWord = (module: string, word: string) => `.${module}.`.includes(`.${word}.`);

/**
 * The adapter_config.json of an adapter, with which PEFT opens it. `base`: the folder of the base, where it has one.
 */
export function peftConfigOf(model: Model, lora: Lora, { base }: { base: string | undefined }): Config {
  const { rank, alpha, rslora, dropout } = lora.options;
  const modulesToSave = savedWordsOf(model, lora);
  return {
    peft_type: "LORA",
    task_type: taskOf(model),
    base_model_name_or_path: base ?? null,
    inference_mode: true,
    r: rank,
    lora_alpha: alpha,
    use_rslora: rslora,
    lora_dropout: dropout,
    target_modules: wordsOf(model, lora.modules()),
    modules_to_save: modulesToSave.length > 0 ? modulesToSave : null,
    fan_in_fan_out: lora.isTransposed,
    bias: "none",
  };
}

/** PEFT's task of the class in `architectures`. */
function taskOf({ config }: Model): string | null {
  const [name = ""] = (config as { architectures?: string[] }).architectures ?? [];
  if (/CausalLM|LMHeadModel/.test(name)) return "CAUSAL_LM";
  return name.endsWith("ForSequenceClassification") ? "SEQ_CLS" : null;
}

/** The last words of the modules' names where no other layer has them, else the whole names. */
function wordsOf(model: Model, modules: readonly string[]): string[] {
  const words = [...new Set(modules.map((name) => name.split(".").at(-1)!))];
  const meant = layersOf(model)
    .flatMap(({ names }) => names)
    .filter((name) => words.some((word) => endsIn(name, word)));
  return meant.length === modules.length ? words : [...modules];
}

/** The words for the modules that are trained whole, where PEFT takes the same ones by them, else the whole names. */
function savedWordsOf(model: Model, lora: Lora): readonly string[] {
  const { modulesToSave: words } = lora.options;
  const saved = new Set(lora.savedModules());
  const namesIn = (name: string) => model.alsoStoredAs?.(name) ?? model.storedAs?.(name) ?? [name];
  const all = lora.baseState().flatMap(([name]) => namesIn(name).map((each) => each.replace(/\.[^.]+$/, "")));
  const isTaken = (name: string) => words.some((word) => isSavedByPeft(name, word));
  return all.every((name) => isTaken(name) === saved.has(name)) ? words : [...saved];
}
