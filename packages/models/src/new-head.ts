import { OptionsError } from "@terse/options";
import type { Model, NamesInFiles } from "./model.ts";

type Weights = NamesInFiles & Required<Pick<Model, "mayBeAbsent" | "adapts" | "adapted">>;

/**
 * How weights with another head (number of classes, or task) fit a model. All is loaded but the head, which keeps its
 * random values. Throws `OptionsError` for a model without a head of its own.
 */
export function withNewHead(model: Model): Weights {
  const { headNames } = model;
  if (headNames === undefined)
    throw new OptionsError([
      "--new-head: this model has no head of its own; leave it out, or take resnet, vit, bert or bert-classifier",
    ]);
  const { basePrefix, copies, unused } = model;
  return {
    storedAs: (parameter) => model.storedAs?.(parameter) ?? [parameter],
    alsoStoredAs: (parameter) => model.alsoStoredAs?.(parameter),
    ...(basePrefix !== undefined && { basePrefix }),
    ...(copies && { copies }),
    unused: unused ? new RegExp(`${headNames.source}|${unused.source}`) : headNames,
    mayBeAbsent: (parameter) => headNames.test(parameter) || (model.mayBeAbsent?.(parameter) ?? false),
    adapts: (parameter, shape) => model.adapts?.(parameter, shape) ?? false,
    adapted: (parameter, stored) => model.adapted!(parameter, stored),
  };
}

/** Names and shapes of the head: "fc.weight (10, 512), fc.bias (10)". */
export const headOf = (model: Model): string =>
  model
    .namedParameters()
    .filter(([name]) => model.headNames?.test(name))
    .map(([name, { shape }]) => `${name} (${shape.join(", ")})`)
    .join(", ");
