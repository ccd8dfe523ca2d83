/** A recipe's section `local`: what does not fit the rest of the recipe, and the optimizer that it makes. */
import { RoundSchedule } from "@terse/optimizers";
import { optimizersOf } from "./parameter-groups.ts";
import type { Recipe } from "./recipe-schema.ts";

/** What a lone rank takes in place of methods whose point is what they send. */
const alone: Readonly<Record<string, string>> = {
  "one-bit-adam": "adamw",
  "zero-one-adam": "adamw",
  "one-bit-lamb": "lamb",
  "lamb-basic-one-bit": "lamb",
  "lion-cub": "lion",
  "distributed-lion": "lion",
};

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
  if (steps % local.syncEvery !== 0) {
    const below = local.syncEvery * Math.floor(steps / local.syncEvery);
    problems.push(
      `steps: after ${steps} steps the last ${steps - below} would not have reached the other ranks, because all parameters are shared every ${local.syncEvery} steps (local.syncEvery); take ${below > 0 ? `${below} or ` : ""}${below + local.syncEvery}`,
    );
  }
  if (local.ranksPerHost !== undefined && local.within !== "host")
    problems.push("local.ranksPerHost: only within: host has it, and within is rank; leave it out, or take host");
  if (exchange.vote === "hierarchical" && local.within === "host")
    problems.push(
      "exchange.vote: hierarchical, and with local.within: host one rank of each host votes in a round; leave exchange.vote out",
    );
  if (overlap === "on" && local.within === "rank")
    problems.push(
      "overlap: on, and with local nothing leaves during a backward: a round travels beside whole steps with local.delay; leave overlap out",
    );
  if (parallel.weight > 1)
    problems.push(
      "parallel.weight: with local each rank has the whole state of its own steps; set it to 1, or leave local out",
    );
  for (const [key, section] of ownOptimizers(recipe)) {
    const {
      name,
      momentumSync,
      localSteps = 1,
    } = section as {
      name: string;
      momentumSync?: { segments: unknown };
      localSteps?: number;
    };
    if (momentumSync && momentumSync.segments !== "none" && local.within === "rank")
      problems.push(`${key}.momentumSync: with local a rank's momenta are its own; leave it out`);
    if (name === "zero-one-adam" && localSteps > 1)
      problems.push(
        `${key}.localSteps: ${localSteps} of 0/1 Adam's own, and local has others: set it to 1, or take adamw`,
      );
  }
  for (const [key, section] of optimizersOf({ key: "local.optimizer", optimizer: local.optimizer }))
    if (section.name === "zero-one-adam")
      problems.push(
        `${key}.name: after a local step of 0/1 Adam the ranks would not share what local shares; take adamw, or sgd`,
      );
  return problems;
}

/** What local steps do that one may not expect, a line each. */
export function remarksOnLocal(recipe: Recipe): string[] {
  const { local } = recipe;
  if (!local) return [];
  const isAlone = local.within === "rank";
  const senseless = (isAlone ? ownOptimizers(recipe) : []).flatMap(([key, { name }]) =>
    alone[name] === undefined
      ? []
      : [
          `${key}.name: with local it steps alone, and ${name} is ${alone[name]} then, but for what it rounds to send it; take ${alone[name]}`,
        ],
  );
  const decays = optimizersOf({ key: "local.optimizer", optimizer: local.optimizer }).flatMap(([key, section]) =>
    ((section as { weightDecay?: number }).weightDecay ?? 0) > 0
      ? [`${key}.weightDecay: weights decay in each rank's own steps, and in the rounds a second time`]
      : [],
  );
  const keeps =
    local.alpha > 0 && local.delay === 0
      ? [
          `local.alpha: ${local.alpha} of a rank's own work outlives a round; it is meant for local.delay, in whose steps a rank has gone on alone`,
        ]
      : [];
  return [...senseless, ...decays, ...keeps];
}

const ownOptimizers = ({ optimizer }: Recipe) => optimizersOf({ key: "optimizer", optimizer });
