/**
 * `advice-LINK`: how far the advice's predictions are from measured times, for every method that advice knows. A run of
 * 1-bit Lion Cub predicts the step times of three other methods from its own measurements; then these train on the same
 * emulated link; and all four do it once more. The lesser of both predictions counts, and the lesser of both measured
 * times: other work on the machine, which can slow it down by a third for the length of a run, is no error of the
 * predictions.
 */
import { mkdtempDisposableSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { advise, measuredSteps, networkOf } from "@terse/train/advice";
import { type Candidate, candidates, recipeOfCandidate } from "@terse/train/candidates";
import { readMetrics } from "@terse/train/metrics";
import type { Recipe } from "@terse/train/recipe";
import { type Measurement, median } from "../measurement.ts";
import type { SuiteOptions } from "../suite.ts";
import { stepsOf, trained } from "./trained.ts";

const ownSteps = 50; // the fewest after which a run measures its network
const [leastSteps, leastSeconds] = [14, 10]; // of the others
const [candidatesPerRun, times] = [3, 2];
const method = ["--optimizer.name=lion-cub", "--optimizer.bits=1", "--optimizer.lr=3e-4"];

/** `error` is |predicted / measured − 1| of a method on a link; `advice_error` is the worst of them. */
export async function* advice(rate: string, { overrides }: SuiteOptions): AsyncGenerator<Measurement> {
  using above = mkdtempDisposableSync(join(tmpdir(), "terse-bench-"));
  const own = overrides.map((each) => `--${each}`);
  const link = ["--emulate-link", rate];
  const errors: number[] = [];
  for (let begin = 0; begin < candidates.length; begin += candidatesPerRun) {
    const some = candidates.slice(begin, begin + candidatesPerRun);
    const predicted = some.map(() => Number.POSITIVE_INFINITY);
    const measured = some.map(() => Number.POSITIVE_INFINITY);
    for (let time = 0; time < times; time++) {
      const { recipe, steps } = await predictions(join(above.path, `own ${begin} ${time}`), [...link, ...own]);
      for (const [i, candidate] of some.entries()) {
        const expected = steps.get(candidate.name);
        if (expected === undefined) continue; // such as votes of hosts, on one host
        predicted[i] = Math.min(predicted[i]!, expected);
        if (time > 0 && expected > 1) continue; // it waits for messages, which other work does not slow down
        const folder = join(above.path, `${candidate.name.replaceAll("/", " of ")} ${time}`);
        measured[i] = Math.min(measured[i]!, await measuredStep(folder, recipe, candidate, expected, link));
      }
    }
    for (const [i, { name }] of some.entries()) {
      if (predicted[i] === Number.POSITIVE_INFINITY) continue;
      const error = Math.abs(predicted[i]! / measured[i]! - 1);
      errors.push(error);
      const inCase = { case: `${name} ×2 ${rate} emulated` };
      yield { ...inCase, metric: "step_predicted", value: 1000 * predicted[i]!, unit: "ms" };
      yield { ...inCase, metric: "step_measured", value: 1000 * measured[i]!, unit: "ms" };
      yield { ...inCase, metric: "error", value: error, unit: "ratio" };
    }
  }
  yield { case: `advice ×2 ${rate}`, metric: "advice_error", value: Math.max(...errors), unit: "ratio" };
}

/** Trains with Lion Cub, and predicts from that run the seconds of a step of each method. */
async function predictions(folder: string, more: readonly string[]) {
  await trained(folder, ["gpt-small", `--steps=${ownSteps}`, ...method, ...more]);
  const recipe = JSON.parse(readFileSync(join(folder, "recipe.json"), "utf8")) as Recipe;
  const lines = await readMetrics(folder);
  const { rows } = await advise(recipe, measuredSteps(lines)!, networkOf(lines)!);
  return { recipe, steps: new Map(rows.map(({ name, step }) => [name, step])) };
}

/** Trains with a method, and returns the seconds of a step. */
async function measuredStep(
  folder: string,
  own: Recipe,
  candidate: Candidate,
  expected: number,
  link: readonly string[],
): Promise<number> {
  const file = `${folder}.json`;
  writeFileSync(file, JSON.stringify(recipeOfCandidate(own, candidate)));
  const enough = Math.min(ownSteps, Math.max(leastSteps, Math.ceil(leastSeconds / expected)));
  const { syncEvery = 1 } = candidate.local ?? {};
  const steps = syncEvery * Math.ceil(enough / syncEvery); // whole rounds
  await trained(folder, ["--recipe", file, `--steps=${steps}`, "--advise=false", ...link]);
  const late = stepsOf(folder).filter(({ step }) => step >= steps / 2); // as advice takes those of its own run
  return median(late.map(({ step_seconds }) => step_seconds));
}
