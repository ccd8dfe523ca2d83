import { type DatasetName, datasets } from "@terse/data";
import { type ModelName, models } from "@terse/models";

/**
 * Whether a model reads the batches of a dataset: the same tensors. One with more of them means something else by those
 * that both have: labels are a class for each row, or tokens to predict.
 */
export function readsData(model: ModelName, data: DatasetName): boolean {
  const [wanted, had] = [models[model].fields, datasets[data].fields];
  return wanted.length === had.length && wanted.every((field) => had.includes(field));
}
