/**
 * One rank's training run, from recipe to checkpoint. In the loop the optimizer, the journal, saves and interruptions
 * send messages.
 */
import type { Group } from "@terse/collectives";
import { LocalSteps } from "@terse/optimizers";
import { tokenVariable, withoutToken } from "@terse/page/access";
import { openPage } from "@terse/page/open-page";
import { Arena, manualSeed } from "@terse/tensor";
import { adviseAtEnd } from "./advice/at-end.ts";
import type { TrainArguments } from "./arguments.ts";
import { averageBuffers } from "./average-buffers.ts";
import { BestSoFar, checkHeldOut } from "./best-so-far.ts";
import { buildData, buildModel, buildOptimizer, remarksOnModel } from "./build.ts";
import { endOthers } from "./end-others.ts";
import { EvaluationStopped, evaluate } from "./evaluate.ts";
import { exitCodeOf, Interruption, type Reason, reasonOf } from "./interruption.ts";
import { Journal } from "./journal.ts";
import { StepMeter } from "./measures/step-meter.ts";
import { openMonitors } from "./monitoring/open-monitors.ts";
import { withOwnDataPath } from "./own-data-path.ts";
import { forwardIn } from "./precision.ts";
import type { Recipe } from "./recipe.ts";
import { type OwnFacts, RoundFacts } from "./round-facts.ts";
import { checkSameData } from "./same-data.ts";
import { withFoundTokenizer } from "./saves/found-tokenizer.ts";
import type { InitialWeights } from "./saves/initial-weights.ts";
import { openRun } from "./saves/open-run.ts";
import type { Run } from "./saves/run.ts";
import { saveAtEnd } from "./saves/save-at-end.ts";
import { learningRate } from "./schedules/schedules.ts";
import { seedOfRank } from "./seed-of-rank.ts";
import { skippedSamples, skippedText } from "./skipped-samples.ts";
import { takeStep } from "./take-step.ts";
import { hasLauncher, tellLauncher } from "./to-launcher.ts";
import { traceOf } from "./trace/trace.ts";
import { writeTrace } from "./trace/write-trace.ts";
import { ofAverage, WeightAverage } from "./weight-average.ts";

/** `given` is undefined for a run that goes on, which has its own recipe. Resolves to the exit code. */
export async function train(
  given: Recipe | undefined,
  group: Group,
  args: TrainArguments & { weights?: InitialWeights | undefined },
): Promise<number> {
  await using run = await openRun(given, group, args);
  await using opened = new AsyncDisposableStack();
  try {
    return await takeSteps(await prepare(run, group, args, opened));
  } catch (error) {
    await run.written();
    // Before `opened` closes its groups: they would wait for ranks that wait for this one.
    await endOthers(group, error);
    throw error;
  }
}

/** The loop. Resolves to the exit code. */
async function takeSteps(prepared: Prepared): Promise<number> {
  const { run, recipe, group, optimizer, average, best, journal, interruption, facts, trace } = prepared;
  const schedule = { ...recipe.schedule, steps: recipe.steps, lr: recipe.optimizer.lr };
  const saveEvery = recipe.save.every ?? recipe.evaluate.every;
  await optimizer.compare(); // every rank begins with the same parameters

  for (let step = run.step; step < recipe.steps; step++) {
    const signal = await (facts
      ? (reasonOf(facts.latest?.signal ?? 0) ?? interruption.between(step))
      : interruption.before(step));
    if (signal !== undefined) return interrupted(step, signal, prepared);
    run.checkFolder();
    const isLogged = step === 0 || every(recipe.evaluate.every, step);
    const isBest = (isLogged || step === run.step) && (await validated(step, prepared, { isLogged }));
    if (isBest === undefined) return interrupted(step, (await interruption.agreed())!, prepared);
    const reason = best.reasonToStop(recipe.stop);
    if (reason) {
      journal.endsEarly(step, reason);
      run.goesOnWith = [reason.goesOn];
      return finished(step, prepared);
    }
    if (step > run.step && (every(saveEvery, step) || (recipe.save.best && isBest))) {
      await shareBuffers(prepared);
      await journal.aside(() => run.beginSave(step, ({ why }) => journal.unsaved(step, why)));
    }

    const stop = journal.start(step);
    const lr = learningRate(step, schedule);
    const report = await takeStep(prepared, lr);
    average?.update(step);
    if (report.round) await facts?.use(() => prepared.ownFacts({ ...report.round!, step, loss: report.loss }));
    await stop({ lr, ...report });
    if (trace?.isComplete(step, step + 1 === recipe.steps))
      await journal.traced(() => writeTrace(trace, group, run.folder));
  }
  return finished(recipe.steps, prepared);
}

/**
 * Evaluates after `step` steps. Resolves to whether that has shown the lowest loss so far, where `isLogged`; to undefined
 * where a signal has ended the evaluation. A resumed run then evaluates anew.
 */
async function validated(
  step: number,
  prepared: Prepared,
  { isLogged }: { isLogged: boolean },
): Promise<boolean | undefined> {
  const { recipe, average, best, journal } = prepared;
  let metrics: Readonly<Record<string, number>> | undefined;
  try {
    metrics = await journal.evaluated(step, () => validate(prepared), { isLogged });
  } catch (error) {
    if (error instanceof EvaluationStopped) return undefined;
    throw error;
  }
  const loss = metrics?.[average ? "loss_of_average" : "loss"]; // losses before the average has begun do not count
  if (!isLogged || loss === undefined || !best.saw(step, loss)) return false;
  if (recipe.save.best || recipe.stop) journal.isBest(step, loss);
  return true;
}

/** The metrics on held-out data, also those of the average. */
async function validate(prepared: Prepared): Promise<Readonly<Record<string, number>>> {
  const { recipe, group, model, data, optimizer, average, forward, interruption } = prepared;
  await shareBuffers(prepared);
  await skippedSamples(data, group); // which ends the run where there are too many
  const isStopped = () => interruption.asked > 0;
  const measure = () => evaluate(model, data, recipe.evaluate.windows, group, { forward, isStopped });
  const metrics = await optimizer.shared(measure);
  return average?.hasBegun ? { ...metrics, ...ofAverage(await average.during(measure)) } : metrics;
}

/** Before an evaluation and a save. */
async function shareBuffers({ recipe, model, group }: Prepared): Promise<void> {
  if (recipe.exchange.buffers === "mean") await averageBuffers(model, group);
}

async function interrupted(step: number, signal: Reason, prepared: Prepared): Promise<number> {
  const { run, journal, monitors } = prepared;
  if (step > run.step) {
    await shareBuffers(prepared);
    await saveAtEnd(step, run, journal);
  }
  await journal.stopped(step, signal);
  monitors?.ended(exitCodeOf(signal));
  return exitCodeOf(signal);
}

/** After the last step, or after one at which the recipe's section `stop` has ended the run. */
async function finished(step: number, prepared: Prepared): Promise<number> {
  const { run, recipe, group, optimizer, journal, monitors, interruption } = prepared;
  await optimizer.compare();
  if (step < recipe.steps) await shareBuffers(prepared);
  else if ((await validated(step, prepared, { isLogged: true })) === undefined)
    return interrupted(step, (await interruption.agreed())!, prepared);
  await saveAtEnd(step, run, journal, interruption);
  await optimizer.shared(() => journal.finish(step));
  await adviseAtEnd(run, group, step, (text) => journal.note(text));
  monitors?.ended(0);
  return 0;
}

/** What takes part in the steps: made as the recipe says, set to where the run begins, and closed with `opened`. */
async function prepare(run: Run, group: Group, args: TrainArguments, opened: AsyncDisposableStack) {
  const recipe = await withFoundTokenizer(withOwnDataPath(run.recipe), run, args, group);
  const model = buildModel(recipe);
  const arena = new Arena(model);
  const data = opened.use(await buildData(recipe, model, group));
  await checkSameData(data, group);
  checkHeldOut(recipe, data);
  const optimizer = opened.use(await buildOptimizer(recipe, arena, group));
  const average = recipe.average && opened.use(new WeightAverage(arena, recipe.average));
  manualSeed(seedOfRank(recipe.seed, group.rank, run.step)); // of dropout; a resumed run restores its own numbers
  await run.begin({ model, data, optimizer, average });
  const trace = traceOf(recipe, run.step);
  const meter = new StepMeter(trace);
  optimizer.watch = meter;
  const skipped = skippedText(await skippedSamples(data, group), data);
  const remarks = [...remarksOnModel(recipe, arena, optimizer), ...(skipped ? [`skipped: ${skipped}`] : [])];
  const facts = optimizer instanceof LocalSteps ? new RoundFacts(group) : undefined;
  const journal = opened.use(new Journal(recipe, group, { model, data, optimizer, run, meter, remarks, facts }));
  if (args.dashboard && group.rank === 0)
    opened.use(openPage(run.folder, args.dashboard, journal, (url) => isShownElsewhere(url, args)));
  const monitors = group.rank > 0 ? undefined : await openMonitors(args, run, (text) => journal.note(text));
  if (monitors) opened.use(monitors);
  const when = facts ? "with one of the next rounds, or within about 10 s of steps," : "after this step";
  const asked = (signal: string) => journal.note(`${signal}: saves ${when} and ends; a second signal ends at once`);
  const interruption = opened.use(new Interruption(group, run.step, asked));
  const ownFacts = ({ loss, ...round }: { step: number; loss: number; drift: number }): OwnFacts => ({
    ...journal.seenSoFar(loss),
    step: round.step,
    drift: round.drift,
    signal: interruption.asked,
  });
  if (optimizer instanceof LocalSteps)
    optimizer.beside = (own) => facts!.exchange(ownFacts({ ...own, step: optimizer.steps - 1 }));
  const best = new BestSoFar(recipe, run.validatedBefore);
  run.validated = () => best.validated;
  const training = { model, arena, data, optimizer, forward: forwardIn(recipe), accumulate: recipe.accumulate, meter };
  return { run, recipe, group, ...training, average, best, journal, monitors, interruption, facts, ownFacts, trace };
}

type Prepared = Awaited<ReturnType<typeof prepare>>;

function every(steps: number, step: number): boolean {
  return steps > 0 && step % steps === 0;
}

/**
 * Whether a page's address with its token need not be printed by this rank, whose output may be a file that others
 * read: with --log-dir our launcher prints it, and who has started ranks in another way with a token knows it.
 */
function isShownElsewhere(page: string, { logDir }: TrainArguments): boolean {
  if (withoutToken(page) === page) return false;
  if (hasLauncher()) return logDir !== undefined && tellLauncher({ page });
  return Boolean(process.env[tokenVariable]) && !process.stdout.isTTY;
}
