/** The last lines of a run: what its network costs, and what would cost less. */
import type { Group } from "@terse/collectives";
import { measureLink } from "@terse/exchange";
import { numThreads } from "@terse/tensor";
import type { Line } from "../monitoring/numbers-of.ts";
import { methodName } from "../parameter-groups.ts";
import { readMetrics } from "../results/read-metrics.ts";
import type { Run } from "../saves/run.ts";
import { adviceText } from "./advice-text.ts";
import { advise, measuredSteps } from "./advise.ts";
import { settledLayers, settledText } from "./warmup.ts";

const leastSteps = 50; // of the run, also before it was resumed; fewer measure too little

/**
 * Measures the network after `step` steps, writes it to metrics.jsonl, and prints advice, or why there is none. All
 * ranks call it. `note` prints a line on rank 0.
 */
export async function adviseAtEnd(
  run: Pick<Run, "recipe" | "folder" | "log">,
  group: Group,
  step: number,
  note: (text: string) => void,
): Promise<void> {
  const { recipe } = run;
  if (!recipe.advise) return;
  if (group.rank === 0)
    for (const each of settledLayers(recipe, await readMetrics(run.folder))) note(settledText(each));
  if (group.size === 1) return note("no advice: one rank sends nothing");
  const logged = Float64Array.of(group.rank === 0 ? stepsLogged(await readMetrics(run.folder), recipe.logEvery) : 0);
  await group.broadcast(logged, 0); // only rank 0 has metrics.jsonl
  if (logged[0]! < leastSteps)
    return note(`no advice: it takes ${leastSteps} measured steps, and metrics.jsonl has ${logged[0]}`);
  const network = await measureLink(group);
  if (group.rank !== 0) return;
  run.log({ step, network: { ...network, threads: numThreads() } });
  const measured = measuredSteps(await readMetrics(run.folder))!;
  for (const line of adviceText(await advise(recipe, measured, network), methodName(recipe))) note(line);
}

/** How many steps the lines have measured: each line counts the steps since the one before, at most `every`. */
function stepsLogged(lines: readonly Line[], every: number): number {
  let before = -1;
  let steps = 0;
  for (const { step, ...line } of lines) {
    if (line["time/forward"] === undefined) continue;
    steps += Math.min(every, step - before);
    before = step;
  }
  return steps;
}
