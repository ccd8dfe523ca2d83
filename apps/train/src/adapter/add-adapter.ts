import { Lora, type Model, models } from "@terse/models";
import { createdIn, manualSeed, withDevice } from "@terse/tensor";
import type { Recipe } from "../recipe.ts";

type Adapted = Pick<Recipe, "adapter" | "model" | "seed">;

/**
 * Makes the model of a recipe, frozen and with its adapter, if it has one. Weights that stay in bf16 are drawn into it:
 * which ones, a model without values says. Throws `OptionsError`.
 */
export function createWithAdapter(create: () => Model, recipe: Adapted): Model {
  const model = createdIn(typesOf(create, recipe), () => {
    manualSeed(recipe.seed);
    return create();
  }).result;
  addAdapter(model, recipe);
  return model;
}

/** The type that memory holds each parameter in, in the order in which they are made. */
function typesOf(create: () => Model, recipe: Adapted) {
  if (recipe.adapter?.base !== "bf16") return [];
  return withDevice("meta", () => {
    const { result: model, made } = createdIn([], create);
    addAdapter(model, recipe);
    const types = made.map(({ dtype }) => dtype);
    model.dispose();
    return types;
  });
}

function addAdapter(model: Model, { adapter, model: { name }, seed }: Adapted): void {
  if (!adapter) return;
  const lora = new Lora(model, adapter, { targets: models[name].adapterTargets, seed });
  if (adapter.base === "bf16") lora.holdBaseInBf16();
}
