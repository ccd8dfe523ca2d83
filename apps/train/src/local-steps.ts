/** A recipe's section `local`: what does not fit the rest of the recipe, and the optimizer that it makes. */
import { RoundSchedule } from "@terse/optimizers";
import { lineOf } from "@terse/options";
import { definitionOf, optimizersOf, ownStepsOf } from "./parameter-groups.ts";
import type { Recipe } from "./recipe-schema.ts";

/** Where local steps do not fit the rest of a recipe, a line each. */
export function problemsOfLocal(recipe: Recipe): string[] {
  const { local, steps, overlap, parallel, exchange } = recipe;
  if (!local) return [];
  const problems: string[] = [];
  try {
    new RoundSchedule(local);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    problems.push(error.message);
  }
  const isShared = steps % local.syncEvery === 0 || (local.fragments === 1 && local.delay === 0);
  if (!isShared) {
    const below = local.syncEvery * Math.floor(steps / local.syncEvery);
    problems.push(
      `steps: after ${steps} steps the last ${steps - below} would be in no round, because with ${local.fragments > 1 ? "local.fragments" : "local.delay"} all parameters are shared every ${local.syncEvery} steps (local.syncEvery); take ${below > 0 ? `${below} or ` : ""}${below + local.syncEvery}`,
    );
  }
  if (local.ranksPerHost !== undefined && local.within !== "host")
    problems.push("local.ranksPerHost: only within: host has it, and within is rank; set it to null, or take host");
  if (exchange.vote === "hierarchical" && local.within === "host")
    problems.push(
      "exchange.vote: hierarchical, and with local.within: host one rank of each host votes in a round; take all-to-all",
    );
  if (overlap === "on" && local.within === "rank")
    problems.push(
      "overlap: on, and with local nothing leaves during a backward: a round travels beside whole steps with local.delay; take auto",
    );
  if (parallel.weight > 1)
    problems.push(
      "parallel.weight: with local each rank has the whole state of its own steps; set it to 1, or leave local out",
    );
  for (const [key, section] of ownOptimizers(recipe)) {
    const { alone, ownSteps } = definitionOf(section);
    if (local.within === "rank")
      for (const problem of alone?.problems?.(section) ?? [])
        problems.push(lineOf({ ...problem, path: `${key}.${problem.path}` }));
    if (ownStepsOf(section) > 1)
      problems.push(
        `${key}.${ownSteps!.option}: ${ownStepsOf(section)} of ${ownSteps!.of}'s own, and local has others: set it to 1, or take ${alone!.is}`,
      );
  }
  for (const [key, section] of optimizersOf({ key: "local.optimizer", optimizer: local.optimizer })) {
    const { alone, ownSteps } = definitionOf(section);
    if (ownSteps)
      problems.push(
        `${key}.name: after a local step of ${ownSteps.of} the ranks would not share what local shares; take ${alone!.is}, or sgd`,
      );
  }
  return problems;
}

/** What local steps do that one may not expect, a line each. */
export function remarksOnLocal(recipe: Recipe): string[] {
  const { local, steps, bucket } = recipe;
  if (!local) return [];
  const { syncEvery, fragments, order } = local;
  const every = syncEvery / fragments;
  const remarks: string[] = [];
  for (const [key, section] of local.within === "rank" ? ownOptimizers(recipe) : []) {
    const { alone } = definitionOf(section);
    if (alone)
      remarks.push(
        `${key}.name: with local it steps alone, and ${section.name} is ${alone.is} then, but for what it rounds to send it; take ${alone.is}`,
      );
  }
  for (const [key, section] of optimizersOf({ key: "local.optimizer", optimizer: local.optimizer }))
    if (((section as { weightDecay?: number }).weightDecay ?? 0) > 0)
      remarks.push(`${key}.weightDecay: weights decay in each rank's own steps, and in the rounds a second time`);
  if (local.alpha > 0 && local.delay === 0)
    remarks.push(
      `local.alpha: ${local.alpha} of a rank's own work outlives a round; it is meant for local.delay, in whose steps a rank has gone on alone`,
    );
  if (local.rebase && local.delay === 0)
    remarks.push(
      "local.rebase: true changes nothing: no steps are taken beside a round; leave it out, or take local.delay",
    );
  if (!local.rebase && local.alpha === 0 && 2 * local.delay > every)
    remarks.push(
      `local.delay: of ${every} steps a rank gives up the ${local.delay} that it takes beside a round; local.rebase: true keeps them`,
    );
  if (syncEvery > steps)
    remarks.push(
      `local.syncEvery: ${syncEvery}, and the run has ${steps} steps: the ranks share nothing before the last one`,
    );
  if (fragments === 1 && order !== "strided")
    remarks.push(
      `local.order: ${order} changes nothing: one fragment has all layers; leave it out, or take local.fragments`,
    );
  if (bucket === "auto")
    remarks.push("bucket: auto changes nothing: with local the buckets of a round leave together; leave it out");
  return remarks;
}

const ownOptimizers = ({ optimizer }: Recipe) => optimizersOf({ key: "optimizer", optimizer });
