/**
 * LoRA of a whole model: Hu et al. 2021, https://arxiv.org/abs/2106.09685. The base is frozen, and what is trained is
 * small: A and B of each target, and the modules of `modulesToSave`. Names in files are those of PEFT:
 *
 *   base_model.model.transformer.h.0.attn.c_attn.lora_A.weight    (r, in)
 *   base_model.model.transformer.h.0.attn.c_attn.lora_B.weight    (out, r)
 *   base_model.model.classifier.weight                            a module of modulesToSave
 */
import { OptionsError } from "@terse/options";
import { BatchNorm2d, Embedding, type Module, manualSeed, type Parameter } from "@terse/tensor";
import type { Model, NamesInFiles } from "../model.ts";
import { exactly, type WeightsOfModel, weightsWithout } from "../weights-without.ts";
import { endsIn, findTargets, layersOf, type NamedLayer, namesOf, type Target } from "./find-targets.ts";
import { createPart, isTransposed, LoraLayer, type LoraPart } from "./lora-layer.ts";
import { allLinear, type LoraOptions } from "./options.ts";

/** Before the names of modules in PEFT's files. */
export const prefix = "base_model.model.";

/** A parameter of an adapter with its name in PEFT's files. */
export type AdapterParameter = readonly [file: string, parameter: Parameter];

const adapters = new WeakMap<Model, Lora>();

/** The adapter that was added to a model. */
export const loraOf = (model: Model): Lora | undefined => adapters.get(model);

/** A model's parameters and buffers without those of an adapter. */
export const baseStateOf = (model: Model): ReturnType<Module["stateDict"]> =>
  loraOf(model)?.baseState() ?? model.stateDict();

export class Lora {
  readonly options: Omit<LoraOptions, "targets"> & { readonly targets: string | readonly string[] };
  readonly #model: Model;
  readonly #layers: readonly { readonly named: NamedLayer; readonly lora: LoraLayer }[];
  readonly #saved: readonly AdapterParameter[]; // of modulesToSave
  readonly #own: ReadonlySet<Parameter>;
  readonly #thaw: () => void;

  /**
   * Freezes the model, and adds trainable adapters of random A, drawn from `seed`, and B = 0. Throws `OptionsError`
   * where targets match nothing.
   */
  constructor(model: Model, options: LoraOptions, { targets: fallback = allLinear, seed = 0 }: LoraDefaults = {}) {
    const { rank, alpha, rslora, dropout: p, targets = fallback, modulesToSave } = options;
    this.options = { ...options, targets };
    this.#model = model;
    const found = findTargets(model, targets, modulesToSave);
    checkLayers(found);
    this.#thaw = freeze(model);
    this.#saved = savedModules(model, modulesToSave);
    for (const [, parameter] of this.#saved) parameter.requiresGrad = true;
    manualSeed(seed); // the same whatever was drawn for the base
    const scaling = alpha / (rslora ? Math.sqrt(rank) : rank);
    this.#layers = [...Map.groupBy(found, ({ named }) => named)].map(([named, targets]) => {
      const count = named.names.length;
      const parts = targets.map(({ index }): LoraPart => {
        const name = count === 1 ? "" : named.names[index]!.split(".").at(-1)!;
        return { name, index, ...createPart(named.layer, { rank, parts: count }) };
      });
      const lora = new LoraLayer(parts, { count, scaling, p });
      lora.train(named.layer.training);
      named.layer.adapter = lora;
      return { named, lora };
    });
    this.#own = new Set(this.#layers.flatMap(({ lora }) => lora.parameters()));
    adapters.set(model, this);
  }

  /** Whether the base stores weights as (in, out): fan_in_fan_out in PEFT's config. */
  get isTransposed(): boolean {
    return this.#layers.some(({ named }) => isTransposed(named.layer));
  }

  /** All that is trained, by the names of PEFT's files. */
  parameters(): AdapterParameter[] {
    const added = this.#layers.flatMap(({ named, lora }) =>
      lora.parts.flatMap((part) =>
        lora
          .parametersOf(part)
          .map(([suffix, parameter]): AdapterParameter => [`${prefix}${named.names[part.index]}.${suffix}`, parameter]),
      ),
    );
    return [...added, ...this.#saved];
  }

  /** The modules that have adapters, by the names that PEFT has for them. */
  modules(): string[] {
    return this.#layers.flatMap(({ named, lora }) => lora.parts.map(({ index }) => named.names[index]!));
  }

  /** The modules that are trained whole, by the names that PEFT has for them. */
  savedModules(): string[] {
    return [...new Set(this.#saved.map(([name]) => name.slice(prefix.length).replace(/\.[^.]+$/, "")))];
  }

  /** The base's parameters and buffers, under their names in the model. */
  baseState(): ReturnType<Module["stateDict"]> {
    return this.#model.stateDict().filter(([, tensor]) => !this.#own.has(tensor as Parameter));
  }

  /** The part of the base that is not trained. */
  frozenState(): ReturnType<Module["stateDict"]> {
    const trained = new Set<unknown>(this.#saved.map(([, parameter]) => parameter));
    return this.baseState().filter(([, tensor]) => !trained.has(tensor));
  }

  /** Holds the frozen weights of layers and embeddings in bf16, half the memory. */
  holdBaseInBf16(): void {
    const walk = (module: Module) => {
      if (module instanceof Embedding && !module.weight.requiresGrad) module.weight.holdIn("bf16");
      for (const [, child] of module.children()) walk(child);
    };
    for (const { layer } of layersOf(this.#model)) if (!layer.weight.requiresGrad) layer.weight.holdIn("bf16");
    walk(this.#model);
  }

  /**
   * Adds s B A to the weights of the base, and takes the adapters away: the model computes the same without them. It
   * can be trained as before, with all weights in their own type.
   */
  merge(): void {
    this.#thaw();
    for (const { named, lora } of this.#layers) {
      lora.mergeInto(named.layer);
      named.layer.adapter = null;
      lora.dispose();
    }
    adapters.delete(this.#model);
  }

  /** The names that files of other versions of transformers have for the adapters of the same parts. */
  get namesInFiles(): NamesInFiles {
    const others = new Map<string, readonly string[]>();
    for (const { named, lora } of this.#layers)
      for (const part of lora.parts)
        for (const [suffix] of lora.parametersOf(part)) {
          const inFile = (names: readonly string[]) => `${prefix}${names[part.index]}.${suffix}`;
          const fitting = named.others.filter((names) => names.length === named.names.length);
          others.set(inFile(named.names), fitting.map(inFile));
        }
    const own = new Set(this.#saved.map(([name]) => name));
    const copies = [...this.copiesInFiles().keys()].filter((name) => !own.has(name));
    return {
      unused: exactly(copies),
      storedAs: (name) => [others.get(name)?.[0] ?? name],
      alsoStoredAs: (name) => [others.get(name)?.[1] ?? name],
    };
  }

  /** Parameters of the base by the names under which PEFT's files may have them again: embeddings and the head. */
  copiesInFiles(): ReadonlyMap<string, Parameter> {
    const copies = new Map<string, Parameter>();
    for (const [name, parameter] of this.#model.namedParameters()) {
      if (this.#own.has(parameter) || !["embedding", "head"].includes(parameter.role)) continue;
      const { names, others } = namesOf(this.#model, name.replace(/\.weight$/, ""));
      for (const [stored, ...more] of [names, ...others])
        if (more.length === 0)
          for (const end of ["weight", "base_layer.weight"]) copies.set(`${prefix}${stored}.${end}`, parameter);
      for (const [stored, tied] of Object.entries(this.#model.copies ?? {}))
        if (tied === name) copies.set(`${prefix}${stored}`, parameter);
    }
    return copies;
  }

  /** How files of a base fit `frozenState()`: what the adapter has itself, such as another head, is not read. */
  get weightsOfBase(): WeightsOfModel {
    const model = this.#model;
    const names = model.namedParameters().flatMap(([name, parameter]) => {
      if (!this.#saved.some(([, saved]) => saved === parameter)) return [];
      return [[name], model.storedAs?.(name) ?? [], model.alsoStoredAs?.(name) ?? []].flat();
    });
    const { basePrefix = "" } = model;
    const withoutPrefix = (name: string) => (name.startsWith(basePrefix) ? name.slice(basePrefix.length) : name);
    return weightsWithout(model, exactly([...names, ...names.map(withoutPrefix)]));
  }
}

export interface LoraDefaults {
  readonly targets?: string | readonly string[] | undefined; // where the options name none
  readonly seed?: number;
}

/**
 * Also running statistics stay those of the base, because adapters are saved without them. The result of it takes
 * everything back.
 */
function freeze(model: Model): () => void {
  const trained = model.parameters().filter(({ requiresGrad }) => requiresGrad);
  const norms: BatchNorm2d[] = [];
  const walk = (module: Module) => {
    if (module instanceof BatchNorm2d && !module.frozen) norms.push(module);
    for (const [, child] of module.children()) walk(child);
  };
  walk(model);
  model.requiresGrad_(false);
  for (const norm of norms) {
    norm.frozen = true;
    norm.eval();
  }
  return () => {
    for (const norm of norms) {
      norm.frozen = false;
      norm.train(model.training);
    }
    for (const parameter of trained) {
      parameter.holdAsComputed();
      parameter.requiresGrad = true;
    }
  };
}

/** Throws `OptionsError` for a layer of which the adapter would not be PEFT's. */
function checkLayers(targets: readonly Target[]): void {
  for (const { named } of targets) {
    const { groups = 1 } = "options" in named.layer ? (named.layer.options as { groups?: number }) : {};
    if (groups > 1)
      throw new OptionsError([
        `adapter.targets: ${named.name} is a convolution in ${groups} groups, which no adapter here changes; name others`,
      ]);
  }
}

function savedModules(model: Model, modules: readonly string[]): AdapterParameter[] {
  const all = model.namedParameters().map(([name, parameter]) => {
    const stored = namesOf(model, name.replace(/\.[^.]+$/, ""));
    const own = model.alsoStoredAs?.(name) ?? model.storedAs?.(name) ?? [name];
    return { name, parameter, own, modules: [stored.name, ...stored.names, ...stored.others.flat()] };
  });
  const isIn = (names: readonly string[], module: string) =>
    names.some((name) => endsIn(name, module) || `.${name}.`.includes(`.${module}.`));
  const unmatched = modules.filter((module) => !all.some(({ modules: names }) => isIn(names, module)));
  if (unmatched.length > 0)
    throw new OptionsError([`adapter.modulesToSave: ${unmatched.join(", ")} matches no module of this model`]);
  const tied = new Set(Object.values(model.copies ?? {}));
  return all
    .filter(({ modules: names }) => modules.some((module) => isIn(names, module)))
    .map(({ name, parameter, own }) => {
      if (tied.has(name))
        throw new OptionsError([
          `adapter.modulesToSave: ${own[0]} is the head of this model too, and PEFT trains a copy of it that the head does not have; leave it out, or take weights that are not tied`,
        ]);
      if (own.length > 1)
        throw new OptionsError([
          `adapter.modulesToSave: ${own[0]} is a part of a layer here, and is trained by an adapter alone; leave it out`,
        ]);
      return [`${prefix}${own[0]}`, parameter];
    });
}
