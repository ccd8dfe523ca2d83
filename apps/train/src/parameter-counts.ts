import type { Model } from "@terse/models";

/** How many parameters a model has, with those of an adapter, and how many of them are trained. */
export function parameterCounts(model: Model): { readonly parameters: number; readonly trained: number } {
  const trained = model.parameters().filter(({ requiresGrad }) => requiresGrad);
  return { parameters: model.parameterCount(), trained: trained.reduce((sum, { length }) => sum + length, 0) };
}
