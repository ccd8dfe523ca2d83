/**
 * What the network costs a run, and what other methods would cost on it.
 *
 *   step = computing + local work + exposed
 *
 *   computing    data, forward, backward and the loop's own work, as the run has measured them: equal for every method
 *   local work   arithmetic and codecs of the method, measured on this machine (local-work.ts), each times a
 *                correction: what that of the run's own method took in the run ÷ what it takes here. Memory and
 *                processors are slower beside backward and other ranks
 *   exposed      predicted from α and β of the run's network, and from when buckets leave (dry-run/step-time.ts)
 */
import { type Measured, noComputing } from "@terse/exchange";
import { OptionsError } from "@terse/options";
import { numThreads } from "@terse/tensor";
import { absentRanks } from "../dry-run/absent-ranks.ts";
import { lastSteps, meanOf } from "../dry-run/last-steps.ts";
import { shapesOf } from "../dry-run/plan.ts";
import { timeOf } from "../dry-run/step-time.ts";
import { parts } from "../measures/step-parts.ts";
import type { Line } from "../monitoring/numbers-of.ts";
import { parameterCounts } from "../parameter-counts.ts";
import type { Recipe } from "../recipe.ts";
import { type Candidate, candidates, forEachCandidate, recipeOfCandidate } from "./candidates.ts";
import { type LocalWork, localWork, type RanksOfRun, sizesOf } from "./local-work.ts";

/** Seconds of a run's steps, as measured. */
export interface MeasuredSteps extends RanksOfRun {
  readonly step: number;
  readonly computing: number;
  readonly backward: number;
  readonly local: LocalWork;
  readonly exposed: number;
  readonly sentBytes: number;
}

export interface Advice {
  readonly measured: MeasuredSteps;
  readonly network: Measured;
  readonly rows: readonly Row[]; // the fastest first
  readonly leftOut: readonly string[]; // a line for each method that cannot train this model, or not on so many ranks
}

export interface Row {
  readonly name: string;
  readonly bytes: number; // a rank's payload
  readonly step: number; // seconds, predicted
  readonly exposed: number;
  readonly everyStep: boolean; // it sends in every step, and not after local steps
}

/** Means over the second half of a run, in which warm-ups have ended; undefined where no step was measured. */
export function measuredSteps(lines: readonly Line[]): MeasuredSteps | undefined {
  const keys = ["step_seconds", "sent_bytes", "time/exposed", ...parts.map((part) => `time/${part}`)];
  const logged = lines.filter((line) => keys.every((key) => Number.isFinite(line[key])) && ranksOf(line) !== undefined);
  const last = logged.at(-1);
  if (last === undefined) return undefined;
  const late = logged.filter(({ step }) => step > last.step / 2);
  const mean = (key: string) => late.reduce((sum, line) => sum + (line[key] as number), 0) / late.length;
  const [step, exposed] = [mean("step_seconds"), mean("time/exposed")];
  const [data, forward, backward, encode, , decode, update] = parts.map((part) => mean(`time/${part}`));
  const local: LocalWork = { update: update!, codecs: encode! + decode! };
  return {
    ranks: ranksOf(last)!,
    threads: networkOf(lines)?.threads ?? numThreads(),
    step,
    exposed,
    backward: backward!,
    // Beside backward a message's codecs take processors from it, so backward's own time has some of theirs.
    computing: Math.max(data! + forward!, step - exposed - sumOf(local)),
    local,
    sentBytes: last["sent_bytes"] as number,
  };
}

/** How many ranks had a part in a training line. */
export function ranksOf({ "ranks/compute_seconds": each }: Line): number | undefined {
  return Array.isArray(each) && each.length > 0 ? each.length : undefined;
}

/** What a run measures at its end; `threads`: of one operator on a rank. */
type MeasuredNetwork = Measured & { readonly threads?: number };

/** The network's measurements in a run's lines, the last ones. */
export function networkOf(lines: readonly Line[]): MeasuredNetwork | undefined {
  const all = lines.map(({ network }) => network as Partial<MeasuredNetwork> | null | undefined);
  const isMeasured = ({ link }: Partial<MeasuredNetwork>) =>
    Number.isFinite(link?.alpha) && Number.isFinite(link?.beta);
  return all.findLast((network) => network && isMeasured(network)) as MeasuredNetwork | undefined;
}

/** Resolves to the predictions for all candidates that can train this model, and why the others cannot. */
export async function advise(recipe: Recipe, measured: MeasuredSteps, network: Measured): Promise<Advice> {
  const slower = await slowerInRun(recipe, measured);
  const hostsAreKnown = recipe.exchange.ranksPerHost !== undefined;
  const { rows, leftOut } = await forEachCandidate(
    candidates.filter(({ exchange }) => hostsAreKnown || exchange?.["vote"] !== "hierarchical"),
    (candidate) => predictCandidate(candidate, recipe, measured, network, slower),
  );
  return { measured, network, rows: rows.sort((a, b) => a.step - b.step), leftOut };
}

const sumOf = ({ update, codecs }: LocalWork) => update + codecs;

/**
 * The time of the run's own method in the run ÷ its time here, for its arithmetic and its codecs: those that run beside
 * backward are slowed down most. 1 where that cannot be measured.
 */
async function slowerInRun(recipe: Recipe, { ranks, threads, local }: MeasuredSteps): Promise<LocalWork> {
  if (recipe.device !== "cpu" || sumOf(local) === 0) return { update: 1, codecs: 1 };
  try {
    const { trained } = sizesOf(recipe);
    const here = await localWork(recipe, { ranks, threads });
    const both = sumOf(local) / (trained * sumOf(here));
    // A method that has little of one, such as no codecs, says nothing about it.
    const of = (part: keyof LocalWork) => (here[part] > sumOf(here) / 10 ? local[part] / (trained * here[part]) : both);
    return { update: of("update"), codecs: of("codecs") };
  } catch (error) {
    if (!(error instanceof OptionsError || error instanceof RangeError)) throw error;
    return { update: 1, codecs: 1 }; // such as for parameter groups that the layers of local-work.ts do not have
  }
}

async function predictCandidate(
  candidate: Candidate,
  recipe: Recipe,
  { ranks, threads, computing, backward }: MeasuredSteps,
  network: Measured,
  slower: LocalWork,
): Promise<Row> {
  const chosen = recipeOfCandidate({ ...recipe, device: "cpu" }, candidate);
  const { optimizer, model } = shapesOf(chosen, absentRanks(ranks), network);
  const steps = lastSteps(optimizer, chosen);
  const measured = { ...network, codec: noComputing }; // codecs are local work
  const how = { ranks, measured, computing, backward };
  const exposed = meanOf(steps, (step) => timeOf(step, optimizer, chosen, how).exposed);
  const bytes = meanOf(steps, ({ bytes }) => bytes);
  const work = await localWork(chosen, { ranks, threads });
  const local = (slower.update * work.update + slower.codecs * work.codecs) * parameterCounts(model).trained;
  const everyStep = candidate.local === undefined;
  return { name: candidate.name, everyStep, bytes, exposed, step: computing + local + exposed };
}
