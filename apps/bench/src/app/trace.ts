/**
 * `trace`: what `--trace` costs the steps that it traces. gpt-small trains with two ranks, in turns with and
 * without it.
 */
import { mkdtempDisposableSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Measurement, median } from "../measurement.ts";
import type { SuiteOptions } from "../suite.ts";
import { stepsOf, trained } from "./trained.ts";

const warmUp = 10; // steps
const steps = 50; // after it, of each training
const turns = ["without", "with", "with", "without"] as const; // so that slow changes of the machine affect both alike

/**
 * `trace_cost` is the median time of a step with a trace, divided by that without. Writing the file belongs to no step.
 */
export async function* trace({ overrides }: SuiteOptions): AsyncGenerator<Measurement> {
  using above = mkdtempDisposableSync(join(tmpdir(), "terse-bench-"));
  const times = { without: [] as number[], with: [] as number[] };
  for (const [i, turn] of turns.entries()) {
    const traced = turn === "with" ? [`--trace.from=${warmUp}`, `--trace.steps=${steps}`] : [];
    const own = overrides.map((each) => `--${each}`);
    const folder = join(above.path, `run-${i}`);
    await trained(folder, ["gpt-small", `--steps=${warmUp + steps}`, "--advise=false", ...traced, ...own]);
    times[turn].push(...stepsOf(folder).flatMap(({ step, step_seconds }) => (step < warmUp ? [] : step_seconds)));
    process.stderr.write(`trace: training ${i + 1} of ${turns.length}\n`);
  }
  const inCase = { case: "trace ×2" };
  const [without, during] = [median(times.without), median(times.with)];
  yield { ...inCase, metric: "step_without", value: 1000 * without, unit: "ms" };
  yield { ...inCase, metric: "step_with", value: 1000 * during, unit: "ms" };
  yield { ...inCase, metric: "trace_cost", value: during / without, unit: "ratio" };
}
