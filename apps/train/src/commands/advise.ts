/**
 * `./terse advise RUN`: what the network costs a run, and what other methods would cost on it or on another link; and
 * how long a warm-up would have been, where the run has followed the variance.
 */
import { parseLink } from "@terse/collectives";
import { OptionsError, parseArguments, print } from "@terse/options";
import { adviceText } from "../advice/advice-text.ts";
import { advise, measuredSteps, networkOf } from "../advice/advise.ts";
import { settledLayers, settledText } from "../advice/warmup.ts";
import { measuredOf } from "../dry-run/measured-of.ts";
import { methodName } from "../parameter-groups.ts";
import { readMetrics } from "../results/read-metrics.ts";
import { recipeOfRun } from "../results/recipe-of-run.ts";
import { newestRun } from "../saves/model-of-run.ts";

export async function adviseCommand(argv: readonly string[]): Promise<void> {
  const syntax = { command: "./terse advise", flags: { link: parseLink, json: "switch" } as const };
  const { flags, words } = parseArguments(argv, syntax);
  if (words.length > 1) throw new OptionsError([`advise takes one run, got "${words[1]}" too`]);
  const run = words[0] ?? newestRun();
  const recipe = recipeOfRun(run);
  let problem: string | undefined;
  const lines = await readMetrics(run, (found) => {
    problem = found;
  });
  const measured = measuredSteps(lines);
  if (measured === undefined)
    throw new OptionsError([
      `${run} has no measured steps: ${problem ?? "it was written by an older version, or no step was logged"}`,
    ]);
  const settled = settledLayers(recipe, lines);
  if (!flags.json) for (const each of settled) print(settledText(each));
  if (measured.ranks === 1 && settled.length > 0 && flags.link === undefined)
    return flags.json ? print(JSON.stringify({ settled })) : undefined;
  if (measured.ranks === 1)
    throw new OptionsError([
      `${run} had one rank, which sends nothing; train with --nproc-per-node 2 or more, or plan with ./terse train --dry-run --world-size N --link LINK`,
    ]);
  if (problem !== undefined) print(problem, process.stderr);
  const network = flags.link ? await measuredOf(flags.link) : networkOf(lines);
  if (network === undefined)
    throw new OptionsError([
      `${run} has not measured its network, because it had fewer than 50 steps, or advise: false; give a link, such as --link 1gbit,50us`,
    ]);
  const advice = await advise(recipe, measured, network);
  const text = flags.json ? JSON.stringify({ ...advice, settled }) : adviceText(advice, methodName(recipe));
  print(text);
}
