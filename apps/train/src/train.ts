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
import { evaluate } from "./evaluate.ts";
import { exitCodeOf, Interruption, reasonOf } from "./interruption.ts";
import { Journal } from "./journal.ts";
import { StepMeter } from "./measures/step-meter.ts";
import { openMonitors } from "./monitoring/open-monitors.ts";
import { withOwnDataPath } from "./own-data-path.ts";
import { forwardIn } from "./precision.ts";
import type { Recipe } from "./recipe.ts";
import { RoundFacts } from "./round-facts.ts";
import { checkSameData } from "./same-data.ts";
import type { InitialWeights } from "./saves/initial-weights.ts";
import { openRun } from "./saves/open-run.ts";
import type { Run } from "./saves/run.ts";
import { saveAtEnd } from "./saves/save-at-end.ts";
import { withTokenizerOfBase } from "./saves/tokenizer-of-base.ts";
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
    return await takeSteps(run, group, args, opened);
  } catch (error) {
    await run.written();
    // Before `opened` closes its groups: they would wait for ranks that wait for this one.
    await endOthers(group, error);
    throw error;
  }
}

async function takeSteps(run: Run, group: Group, args: TrainArguments, opened: AsyncDisposableStack): Promise<number> {
  const recipe = await withTokenizerOfBase(withOwnDataPath(run.recipe), run, args, group);
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
  const rounds = optimizer instanceof LocalSteps ? { optimizer, facts: new RoundFacts(group) } : undefined;
  const reported = { model, data, optimizer, run, meter, remarks, facts: rounds?.facts };
  const journal = opened.use(new Journal(recipe, group, reported));
  if (args.dashboard && group.rank === 0)
    opened.use(openPage(run.folder, args.dashboard, journal, (url) => isShownElsewhere(url, args)));
  const monitors = group.rank > 0 ? undefined : await openMonitors(args, run, (text) => journal.note(text));
  if (monitors) opened.use(monitors);
  const when = rounds ? "when the next round is used" : "after this step";
  const asked = (signal: string) => journal.note(`${signal}: saves ${when} and ends; a second signal ends at once`);
  const interruption = opened.use(new Interruption(group, run.step, asked));
  if (rounds)
    rounds.optimizer.beside = ({ loss, drift }) =>
      rounds.facts.exchange({ ...journal.seenSoFar(loss), drift, signal: interruption.asked });

  const schedule = { ...recipe.schedule, steps: recipe.steps, lr: recipe.optimizer.lr };
  const forward = forwardIn(recipe);
  const training = { model, arena, data, optimizer, forward, accumulate: recipe.accumulate, meter };
  const share = async () => {
    if (recipe.exchange.buffers === "mean") await averageBuffers(model, group);
  };
  const validate = async () => {
    await share();
    await skippedSamples(data, group); // which ends the run where there are too many
    const measure = () => evaluate(model, data, recipe.evaluate.windows, group, { forward });
    const metrics = await optimizer.shared(measure);
    if (!average?.hasBegun) return metrics;
    return { ...metrics, ...ofAverage(await average.during(measure)) };
  };
  const saveEvery = recipe.save.every ?? recipe.evaluate.every;

  const best = new BestSoFar(recipe, run.validatedBefore);
  run.validated = () => best.validated;
  /** With an average its losses count, and those before it has begun do not. Returns whether this is the lowest. */
  const saw = (step: number, metrics: Readonly<Record<string, number>> = {}) => {
    const loss = metrics[average ? "loss_of_average" : "loss"];
    const isBest = loss !== undefined && best.saw(step, loss);
    if (isBest && (recipe.save.best || recipe.stop)) journal.isBest(step, loss);
    return isBest;
  };

  await optimizer.compare(); // every rank begins with the same parameters

  let last = recipe.steps;
  for (let step = run.step; step < last; step++) {
    const signal = rounds ? reasonOf(rounds.facts.latest?.signal ?? 0) : await interruption.before(step);
    if (signal !== undefined) {
      if (step > run.step) {
        await share();
        await saveAtEnd(step, run, journal);
      }
      await journal.stopped(step, signal);
      monitors?.ended(exitCodeOf(signal));
      return exitCodeOf(signal);
    }
    run.checkFolder();
    const isLogged = step === 0 || every(recipe.evaluate.every, step);
    const metrics = isLogged || step === run.step ? await journal.evaluated(step, validate, { isLogged }) : undefined;
    const isBest = isLogged && saw(step, metrics);
    const reason = best.reasonToStop(recipe.stop);
    if (reason) {
      journal.endsEarly(step, reason);
      run.goesOnWith = [reason.goesOn];
      last = step;
      break;
    }
    if (step > run.step && (every(saveEvery, step) || (recipe.save.best && isBest))) {
      await share();
      await journal.aside(() => run.beginSave(step, ({ why }) => journal.unsaved(step, why)));
    }

    const stop = journal.start(step);
    const lr = learningRate(step, schedule);
    const report = await takeStep(training, lr);
    average?.update(step);
    if (report.round) rounds?.facts.use();
    await stop({ lr, ...report });
    if (trace?.isComplete(step, step + 1 === recipe.steps))
      await journal.traced(() => writeTrace(trace, group, run.folder));
  }

  await optimizer.compare();
  if (last === recipe.steps) {
    const metrics = await journal.evaluated(last, validate);
    saw(last, metrics);
  } else await share();
  await saveAtEnd(last, run, journal, interruption);
  await optimizer.shared(() => journal.finish(last));
  await adviseAtEnd(run, group, last, (text) => journal.note(text));
  monitors?.ended(0);
  return 0;
}

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
