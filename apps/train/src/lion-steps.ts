/** The compression lion-steps: what it takes from the other sections of a recipe, and what it asks of them. */
import { mostLionSteps } from "@terse/optimizers";
import type { Recipe } from "./recipe-schema.ts";

/** Options of lion-steps. */
interface LionSteps {
  readonly unit: number;
  readonly steps: number;
}

/** The unit of lion-steps is the learning rate of the run, and the steps are those between two rounds, unless given. */
export function withLionSteps(recipe: Recipe): Recipe {
  const { optimizer, local, exchange } = recipe;
  if (exchange.gradient?.name !== "lion-steps") return recipe;
  const given = exchange.gradient as typeof exchange.gradient & Partial<LionSteps>;
  const gradient = { ...given, unit: given.unit ?? optimizer.lr, steps: given.steps ?? local?.syncEvery };
  return { ...recipe, exchange: { ...exchange, gradient } };
}

/** Where the steps between two rounds are no whole numbers of one learning rate, a line each. */
export function problemsOfLionSteps({ local, schedule, optimizer, exchange }: Recipe): string[] {
  if (exchange.gradient?.name !== "lion-steps") return [];
  const key = "exchange.gradient";
  if (!local)
    return [
      `${key}.name: lion-steps sends what local steps of Lion have moved, and there are none; take local.syncEvery, or another compression`,
    ];
  const { unit, steps } = exchange.gradient as unknown as LionSteps;
  const { weightDecay = 0 } = optimizer as { weightDecay?: number };
  const { syncEvery } = local;
  const whole = "with lion-steps each step moves an element by its learning rate";
  const ofRound = Number((1 - (1 - optimizer.lr * weightDecay) ** syncEvery).toPrecision(3));
  const warmup = schedule.warmup > 0 ? " with a warm-up" : "";
  return [
    optimizer.name !== "lion" && `optimizer.name: ${whole}, and ${optimizer.name} does not; take lion`,
    optimizer.groups.length > 0 && `optimizer.groups: ${whole}, the same for all; leave them out`,
    weightDecay > 0 &&
      `optimizer.weightDecay: ${whole}, and decay moves it further; set it to 0, and let a round decay as much: local.optimizer.weightDecay=${ofRound}`,
    (String(schedule.name) !== "constant" || schedule.warmup > 0) &&
      `schedule: ${schedule.name}${warmup}, and with lion-steps all steps have one learning rate; take --schedule.name=constant --schedule.warmup=0`,
    unit !== optimizer.lr && `${key}.unit: ${unit}, and optimizer.lr is ${optimizer.lr}; leave it out`,
    syncEvery > mostLionSteps
      ? `local.syncEvery: lion-steps has whole numbers for up to ${mostLionSteps} steps, got ${syncEvery}; take fewer`
      : steps < syncEvery && `${key}.steps: ${steps}, and local.syncEvery is ${syncEvery}; leave it out`,
    local.alpha > 0 &&
      `local.alpha: ${local.alpha}, and with lion-steps a rank goes on from what all have; set it to 0`,
  ].filter((problem) => problem !== false);
}
