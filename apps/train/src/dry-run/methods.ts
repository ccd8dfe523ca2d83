/** What other methods would need in the place of a recipe's own: memory, bytes, and on a link the time of a step. */
import { noComputing } from "@terse/exchange";
import { scope } from "@terse/tensor";
import { candidates, forEachCandidate, recipeOfCandidate } from "../advice/candidates.ts";
import type { Recipe } from "../recipe.ts";
import { absentRanks } from "./absent-ranks.ts";
import { lastSteps, meanOf } from "./last-steps.ts";
import { memoryOf, type Plan, shapesOf } from "./plan.ts";
import { timeOf } from "./step-time.ts";

export interface MethodPlan {
  readonly name: string;
  readonly memory: number; // bytes of a rank
  readonly bytes: number; // that a rank sends in a step, when warm-ups have ended
  readonly time?: { readonly step: number; readonly exposed: number }; // seconds
}

export interface Methods {
  readonly own: MethodPlan;
  readonly others: readonly MethodPlan[]; // the fastest first; without a link those that send least
  readonly leftOut: readonly string[]; // a line for each method that cannot train this model, or not on so many ranks
}

/** `ranksPerHost`: for votes of hosts, where the recipe does not say it. */
export async function methodsOf(
  { recipe, phases, measured }: Plan,
  ranks: number,
  ranksPerHost?: number,
): Promise<Methods> {
  const computing = phases[0]!.time?.computing; // the same for every method
  const planned = async (name: string, recipe: Recipe): Promise<MethodPlan> => {
    const { model, arena, optimizer } = shapesOf(recipe, absentRanks(ranks), measured);
    const last = lastSteps(optimizer, recipe);
    const memory = await memoryOf(model, arena, optimizer, {
      ranks,
      steps: last.map(({ step }) => step),
      average: recipe.average !== undefined,
    });
    const row = {
      name,
      memory: Object.values(memory).reduce((sum, bytes) => sum + bytes, 0),
      bytes: meanOf(last, ({ bytes }) => bytes),
    };
    if (!measured || computing === undefined) return row;
    // The time of codecs is known for some methods only, so none has it.
    const how = { ranks, measured: { ...measured, codec: noComputing }, computing };
    const exposed = meanOf(last, (step) => timeOf(step, optimizer, recipe, how).exposed);
    return { ...row, time: { step: computing + exposed, exposed } };
  };

  const { rows: others, leftOut } = await forEachCandidate(candidates, (candidate) =>
    scope(() => planned(candidate.name, recipeOfCandidate(recipe, candidate, ranksPerHost))),
  );
  const cost = ({ bytes, time }: MethodPlan) => time?.step ?? bytes;
  return {
    own: await scope(() => planned("this recipe", recipe)),
    others: others.sort((a, b) => cost(a) - cost(b) || a.bytes - b.bytes),
    leftOut,
  };
}
