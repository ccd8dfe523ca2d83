import { defaultRecipe, droppedOptions, type Recipe, remarksOn } from "../recipe.ts";
import { remarksOnWeights } from "./initial-weights.ts";
import type { RunArguments } from "./run-arguments.ts";

type Named = Pick<RunArguments, "recipe" | "overrides" | "initFrom" | "weights">;

/** What the user of a new run should know of its recipe and of the weights with which it begins, a line each. */
export function remarksAtStart(recipe: Recipe, args: Named): string[] {
  const { initFrom, weights } = args;
  return [
    ...droppedOptions(args.recipe ?? defaultRecipe, args.overrides),
    ...remarksOn(recipe),
    ...(initFrom === undefined ? [] : [`the weights are those of ${initFrom}`]),
    ...(weights ? remarksOnWeights(weights, recipe, isOfRecipeHere(args) ? "of a recipe here" : "given") : []),
  ];
}

/** Whether the learning rate is that of a recipe in apps/train/recipes. */
const isOfRecipeHere = ({ recipe, overrides }: Named) =>
  (recipe === undefined || /^[\w-]+$/.test(recipe)) && !overrides.some((each) => /^(--)?optimizer(\.lr)?=/.test(each));
