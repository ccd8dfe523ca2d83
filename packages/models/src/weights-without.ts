import type { Model, NamesInFiles } from "./model.ts";

/** How a folder of weights fits a model. */
export type WeightsOfModel = NamesInFiles & Required<Pick<Model, "mayBeAbsent" | "adapts" | "adapted">>;

/** How weights fit a model of which they may lack what these names stand for, or have something else there. */
export function weightsWithout(model: Model, names: RegExp): WeightsOfModel {
  const { basePrefix, copies, unused } = model;
  return {
    storedAs: (parameter) => model.storedAs?.(parameter) ?? [parameter],
    alsoStoredAs: (parameter) => model.alsoStoredAs?.(parameter),
    ...(basePrefix !== undefined && { basePrefix }),
    ...(copies && { copies }),
    unused: unused ? new RegExp(`${names.source}|${unused.source}`) : names,
    mayBeAbsent: (parameter) => names.test(parameter) || (model.mayBeAbsent?.(parameter) ?? false),
    adapts: (parameter, shape) => model.adapts?.(parameter, shape) ?? false,
    adapted: (parameter, stored) => model.adapted!(parameter, stored),
  };
}

/** A pattern that these names alone match, whole. */
export const exactly = (names: Iterable<string>): RegExp =>
  new RegExp(`^(?:${[...names].map((name) => name.replaceAll(".", "\\.")).join("|") || "(?!)"})$`);
