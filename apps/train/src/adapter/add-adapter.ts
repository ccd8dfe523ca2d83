import { Lora, type Model, models } from "@terse/models";
import type { Recipe } from "../recipe.ts";

/** Freezes the model of a recipe and adds its adapter, if it has one. Throws `OptionsError`. */
export function addAdapter(
  model: Model,
  { adapter, model: { name }, seed }: Pick<Recipe, "adapter" | "model" | "seed">,
) {
  if (!adapter) return;
  const lora = new Lora(model, adapter, { targets: models[name].adapterTargets, seed });
  if (adapter.base === "bf16") lora.holdBaseInBf16();
}
