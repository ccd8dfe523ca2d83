import { OptionsError } from "@terse/options";
import type { Model } from "./model.ts";

type Weights = Required<Pick<Model, "parameterOf" | "mayBeAbsent" | "adapts" | "adapted">>;

/**
 * How weights with another head fit a model: number of classes, or task. All is loaded but the head, which keeps its random values. Throws
 * `OptionsError` for a model without a head of its own.
 */
export function withNewHead(model: Model): Weights {
  const { headNames } = model;
  if (headNames === undefined)
    throw new OptionsError([
      "--new-head: this model has no head of its own; leave it out, or take resnet, vit, bert or bert-classifier",
    ]);
  return {
    parameterOf: (stored) => {
      const found = model.parameterOf ? model.parameterOf(stored) : stored;
      const parameter = typeof found === "object" ? found.parameter : found;
      return parameter === undefined || headNames.test(parameter) ? undefined : found;
    },
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
