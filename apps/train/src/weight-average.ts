/**
 * The exponential moving average of the weights (EMA), beside the weights that are trained:
 *
 *   θ̄ ← θ                             after the first step that counts
 *   θ̄ ← θ̄ + (1 − decay) (θ − θ̄)       after each later one
 *
 * The values are those of torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(decay). As there, buffers are
 * not averaged. Every rank has the same θ, so each computes its own average, and nothing is sent.
 */
import { type Arena, noGrad, scope, type Tensor, zeros } from "@terse/tensor";
import { definitionOf, optimizersOf, ownStepsOf } from "./parameter-groups.ts";
import type { Recipe } from "./recipe-schema.ts";

type Options = NonNullable<Recipe["average"]>;

const chunk = 1 << 20; // elements that change places at once

export class WeightAverage implements Disposable {
  readonly #parameters: Tensor; // θ (N)
  readonly #average: Tensor; // θ̄ (N)
  readonly #options: Options;
  #hasBegun = false;

  constructor({ parameters }: Pick<Arena, "parameters">, options: Options) {
    this.#parameters = parameters;
    this.#average = zeros([parameters.length], { device: parameters.device }).keep();
    this.#options = options;
  }

  /** False until the first step after `from` steps. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Takes the weights after step `step`, counted from 0, into the average. */
  update(step: number): void {
    const { decay, from } = this.#options;
    if (step < from && !this.#hasBegun) return; // a resumed run may have a later `from`
    noGrad(() => {
      if (this.#hasBegun) this.#average.lerp_(this.#parameters, 1 - decay);
      else this.#average.copy_(this.#parameters);
    });
    this.#hasBegun = true;
  }

  /** Runs `body` while the model has the average. */
  async during<T>(body: () => Promise<T>): Promise<T> {
    this.#exchange();
    try {
      return await body();
    } finally {
      this.#exchange();
    }
  }

  /** Goes on with the weights that `load` gives the model. */
  async restore(load: () => Promise<void>): Promise<void> {
    await this.during(load);
    this.#hasBegun = true;
  }

  /** θ ↔ θ̄, a chunk at a time: a whole copy would take the memory of the model once more. */
  #exchange(): void {
    const n = this.#parameters.length;
    noGrad(() => {
      for (let at = 0; at < n; at += chunk)
        scope(() => {
          const [a, b] = [this.#parameters, this.#average].map((all) => all.narrow(0, at, Math.min(chunk, n - at)));
          const kept = a!.clone();
          a!.copy_(b!);
          b!.copy_(kept);
        });
    });
  }

  [Symbol.dispose](): void {
    this.#average.dispose();
  }
}

/** Metrics, or their units, under the names that those of the average have: loss_of_average. */
export const ofAverage = <T>(metrics: Readonly<Record<string, T>>): Readonly<Record<string, T>> =>
  Object.fromEntries(Object.entries(metrics).map(([name, value]) => [`${name}_of_average`, value]));

/** Where an average does not fit the rest of a recipe, a line each. */
export function problemsOfAverage(recipe: Recipe): string[] {
  const { average, local, steps } = recipe;
  if (!average) return [];
  const problems: string[] = [];
  if (local)
    problems.push(
      "average: with local the ranks share their weights only every round, and the shared copy is a mean already; leave average out, or local",
    );
  for (const [key, section] of optimizersOf({ key: "optimizer", optimizer: recipe.optimizer }))
    if (ownStepsOf(section) > 1) {
      const { option, of } = definitionOf(section).ownSteps!;
      problems.push(
        `average: with ${key}.${option} of ${of} the ranks' weights differ between two rounds; set ${key}.${option} to 1, or leave average out`,
      );
    }
  if (average.from >= steps)
    problems.push(
      `average.from: the average begins after ${average.from} steps, and the run has ${steps}; take a smaller one`,
    );
  return problems;
}

/** What an average does that one may not expect. */
export function remarksOnAverage({ average, steps }: Recipe): string[] {
  if (!average) return [];
  const updates = steps - average.from - 1;
  const share = average.decay ** updates; // of the weights with which it began
  if (share < 0.05) return [];
  const fits = Number((1 - 3 / Math.max(updates, 4)).toPrecision(2)); // e⁻³ = 5 %
  return [
    `average.decay: at the end of the run ${Math.round(100 * share)} % of the average are still the weights with which it began; take a smaller decay, such as ${fits}`,
  ];
}
