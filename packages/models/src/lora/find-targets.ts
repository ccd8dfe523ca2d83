/** Which modules of a model an adapter changes: PEFT's rule, by the ends of their names. */
import { nearest, OptionsError } from "@terse/options";
import { AdaptableLayer, Conv2d, type Module } from "@terse/tensor";
import type { Model } from "../model.ts";
import { allLinear } from "./options.ts";

/** A layer with the names of its module: here, and in PEFT's files, where each part of its rows may have its own. */
export interface NamedLayer {
  readonly name: string;
  readonly layer: AdaptableLayer;
  readonly names: readonly string[]; // one for each part of the rows
  readonly others: readonly (readonly string[])[]; // other names of the same parts
}

/** A part of a layer's rows. */
export interface Target {
  readonly named: NamedLayer;
  readonly index: number;
}

export function layersOf(model: Model): NamedLayer[] {
  const found: NamedLayer[] = [];
  const walk = (module: Module, prefix: string) => {
    if (module instanceof AdaptableLayer) found.push({ layer: module, ...namesOf(model, prefix.slice(0, -1)) });
    else for (const [name, child] of module.children()) walk(child, `${prefix}${name}.`);
  };
  walk(model, "");
  return found;
}

/** The names of a module: transformers' in memory, which PEFT writes, come first. */
export function namesOf(model: Model, name: string): Omit<NamedLayer, "layer"> {
  const weight = `${name}.weight`;
  const all = [model.alsoStoredAs?.(weight), model.storedAs?.(weight), [weight]].filter((each) => each !== undefined);
  const [names, ...others] = all.map((each) => each.map((stored) => stored.replace(/\.weight$/, ""))) as [string[]];
  return { name, names, others };
}

export const endsIn = (name: string, end: string) => name === end || name.endsWith(`.${end}`);

/** Throws `OptionsError` where a target matches nothing. */
export function findTargets(
  model: Model,
  targets: string | readonly string[],
  modulesToSave: readonly string[],
): Target[] {
  const isSaved = ({ names, others }: NamedLayer) =>
    [names, ...others].flat().some((name) => modulesToSave.some((module) => `.${name}.`.includes(`.${module}.`)));
  const layers = layersOf(model).filter((layer) => !isSaved(layer));
  const wanted = typeof targets === "string" ? [targets] : targets;
  if (wanted.includes(allLinear)) {
    const linear = layers.filter(({ layer }) => !(layer instanceof Conv2d) && layer.weight.role !== "head");
    if (linear.length > 0) return linear.flatMap(partsOf);
    throw new OptionsError([
      `adapter.targets: ${allLinear}: this model has no linear layer but its head; name layers, such as ${ends(layers)}`,
    ]);
  }
  const unmatched = wanted.filter((target) => !layers.some((layer) => matching(layer, target).length > 0));
  if (wanted.length === 0 || unmatched.length > 0) {
    const names = endsOf(layers);
    const near = unmatched.flatMap((target) => nearest(target, names) ?? []);
    const meant = near.length > 0 ? `did you mean ${[...new Set(near)].join(", ")}? ` : "";
    throw new OptionsError([
      `adapter.targets: ${unmatched.join(", ") || "none is named; no module"} matches no layer; ${meant}there is ${ends(layers)}, and ${allLinear}`,
    ]);
  }
  const isWanted = ({ named, index }: Target) => wanted.some((target) => matching(named, target).includes(index));
  return layers.flatMap((layer) => partsOf(layer).filter(isWanted));
}

const partsOf = (named: NamedLayer): Target[] => named.names.map((_, index) => ({ named, index }));

/** The parts of a layer that a target means: the name of the whole layer means all of them. */
function matching({ name, names, others }: NamedLayer, target: string): number[] {
  if (endsIn(name, target)) return [...names.keys()];
  return [...names.keys()].filter((i) =>
    [names, ...others].some((each) => each[i] !== undefined && endsIn(each[i], target)),
  );
}

/** The last words of names, without numbers: c_attn, c_proj. */
const endsOf = (layers: readonly NamedLayer[]) => [
  ...new Set(
    layers.flatMap(({ names }) =>
      names.map(
        (name) =>
          name
            .replace(/(\.\d+)+$/, "")
            .split(".")
            .at(-1)!,
      ),
    ),
  ),
];

const ends = (layers: readonly NamedLayer[]) => endsOf(layers).join(", ");
