import { OptionsError } from "@terse/options";
import type { Model } from "./model.ts";
import { exactly, type WeightsOfModel, weightsWithout } from "./weights-without.ts";

/**
 * How weights with another head (number of classes, or task) fit a model. All is loaded but the head, which keeps its
 * random values. Throws `OptionsError` for a model without a head of its own.
 */
export function withNewHead(model: Model): WeightsOfModel {
  const { headNames } = model;
  if (headNames === undefined)
    throw new OptionsError([
      "--new-head: this model has no head of its own; leave it out, or take resnet, vit, bert or bert-classifier",
    ]);
  return weightsWithout(model, headNames);
}

/** How the weights of a model without a head fit one with a head. */
export function withoutHead(model: Model): WeightsOfModel {
  const heads = model.namedParameters().filter(([, { role }]) => role === "head");
  return weightsWithout(model, model.headNames ?? exactly(heads.map(([name]) => name)));
}

/** Names and shapes of the head: "fc.weight (10, 512), fc.bias (10)". */
export const headOf = (model: Model): string =>
  model
    .namedParameters()
    .filter(([name]) => model.headNames?.test(name))
    .map(([name, { shape }]) => `${name} (${shape.join(", ")})`)
    .join(", ");
