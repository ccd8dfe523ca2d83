/**
 * `advice-LINK`: how far the advice's predictions are from measured times, for every method that advice knows. Runs of 1-bit Lion Cub, which
 * predict the step time of other methods from their own measurements, take turns with runs of those methods on the same emulated link. A
 * prediction is the mean of those from the run before and the run after, so that a machine that becomes faster or slower meanwhile, here by
 * up to a sixth within minutes, does not count as an error of the predictions.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { advise, measuredSteps, networkOf } from "@terse/train/advice";
import { candidates, recipeOfCandidate } from "@terse/train/candidates";
import { readMetrics } from "@terse/train/metrics";
import type { Recipe } from "@terse/train/recipe";
import { type Measurement, median } from "../measurement.ts";
import type { SuiteOptions } from "../suite.ts";
import { stepsOf, trained } from "./trained.ts";

const ownSteps = 50; // the fewest after which a run measures its network
const [leastSteps, leastSeconds] = [14, 10]; // of the others
const method = ["--optimizer.name=lion-cub", "--optimizer.bits=1", "--optimizer.lr=3e-4"];

/** `error` is |predicted / measured − 1| of a method on a link; `advice_error` is the worst of them. */
export async function* advice(rate: string, { overrides }: SuiteOptions): AsyncGenerator<Measurement> {
  const above = mkdtempSync(join(tmpdir(), "terse-bench-"));
  const own = overrides.map((each) => `--${each}`);
  const link = ["--emulate-link", rate];
  const errors: number[] = [];
  try {
    let before = await predictions(join(above, "own"), [...link, ...own]);
    for (const candidate of candidates) {
      const expected = before.steps.get(candidate.name);
      if (expected === undefined) continue; // such as votes of hosts, on one host
      const folder = join(above, candidate.name.replaceAll("/", " of "));
      const file = `${folder}.json`;
      writeFileSync(file, JSON.stringify(recipeOfCandidate(before.recipe, candidate)));
      const steps = Math.min(ownSteps, Math.max(leastSteps, Math.ceil(leastSeconds / expected)));
      await trained(folder, ["--recipe", file, `--steps=${steps}`, "--advise=false", ...link]);
      const late = stepsOf(folder).filter(({ step }) => step >= steps / 2); // as advice takes those of its own run
      const measured = median(late.map(({ step_seconds }) => step_seconds));
      const after = await predictions(`${folder}, then own`, [...link, ...own]);
      const predicted = (expected + after.steps.get(candidate.name)!) / 2;
      before = after;
      const error = Math.abs(predicted / measured - 1);
      errors.push(error);
      const inCase = { case: `${candidate.name} ×2 ${rate} emulated` };
      yield { ...inCase, metric: "step_predicted", value: 1000 * predicted, unit: "ms" };
      yield { ...inCase, metric: "step_measured", value: 1000 * measured, unit: "ms" };
      yield { ...inCase, metric: "error", value: error, unit: "ratio" };
    }
    yield { case: `advice ×2 ${rate}`, metric: "advice_error", value: Math.max(...errors), unit: "ratio" };
  } finally {
    rmSync(above, { recursive: true, force: true });
  }
}

/** Trains with Lion Cub, and predicts from that run the seconds of a step of each method. */
async function predictions(folder: string, more: readonly string[]) {
  await trained(folder, [`--steps=${ownSteps}`, ...method, ...more]);
  const recipe = JSON.parse(readFileSync(join(folder, "recipe.json"), "utf8")) as Recipe;
  const lines = readMetrics(folder);
  const { rows } = await advise(recipe, measuredSteps(lines)!, networkOf(lines)!);
  return { recipe, steps: new Map(rows.map(({ name, step }) => [name, step])) };
}
