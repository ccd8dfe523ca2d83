/** The last lines of a run: what its network costs, and what would cost less. */
import type { Group } from "@terse/collectives";
import { measureLink } from "@terse/exchange";
import { numThreads } from "@terse/tensor";
import { methodName } from "../parameter-groups.ts";
import type { Run } from "../saves/run.ts";
import { adviceText } from "./advice-text.ts";
import { advise, measuredSteps } from "./advise.ts";
import { readMetrics } from "./read-metrics.ts";

const leastSteps = 50; // of this process; fewer measure too little

/** Measures the network, writes it to metrics.jsonl, and prints advice. All ranks call it. `note` prints a line, on rank 0. */
export async function adviseAtEnd(run: Run, group: Group, note: (text: string) => void): Promise<void> {
  const { recipe } = run;
  if (!recipe.advise || group.size === 1 || recipe.steps - run.step < leastSteps) return;
  const network = await measureLink(group);
  if (group.rank !== 0) return;
  run.log({ step: recipe.steps, network: { ...network, threads: numThreads() } });
  const measured = measuredSteps(readMetrics(run.folder));
  if (measured === undefined) return;
  for (const line of adviceText(await advise(recipe, measured, network), methodName(recipe))) note(line);
}
