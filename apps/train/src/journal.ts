/** What a run reports: every rank measures, rank 0 prints, and `metrics.jsonl` has every number. */
import { CheckpointError } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import type { AutoVoteScheme, Choice } from "@terse/exchange";
import type { StepReport, TrainingOptimizer } from "@terse/optimizers";
import type { Validated } from "./best-so-far.ts";
import { emulatedLinkText } from "./emulated-link-text.ts";
import { sentence } from "./failure.ts";
import { bytesText, durationText } from "./format.ts";
import { inventoryLines } from "./inventory-lines.ts";
import { isBetterMeasuredNext, measure } from "./measures/measure.ts";
import { gatherRanks, type MeasuredRanks, type RankMeasures } from "./measures/ranks.ts";
import type { StepMeter } from "./measures/step-meter.ts";
import type { PartTimes } from "./measures/step-parts.ts";
import { openingLines } from "./opening-lines.ts";
import type { Parts } from "./parts.ts";
import type { Recipe } from "./recipe.ts";
import type { RoundFacts } from "./round-facts.ts";
import { runSummary } from "./run-summary.ts";
import type { Sums } from "./saves/metrics.ts";
import type { Run } from "./saves/run.ts";
import { skippedSamples, skippedText } from "./skipped-samples.ts";
import { openTerminal, type Terminal } from "./terminal.ts";
import { ofAverage } from "./weight-average.ts";

interface Reported extends Parts {
  readonly facts?: RoundFacts | undefined; // with local steps
  readonly run: Run;
  readonly meter: StepMeter;
  readonly remarks: readonly string[];
}

type SeenStep = { readonly loss: number; readonly lr: number } & StepReport; // by one rank

/** What steps have cost since a moment. */
class StepSums {
  began = performance.now(); // later by the time of what belongs to no step
  steps = 0;
  exposed = 0; // seconds
  bytes = 0;
  rounds = 0;

  add({ exposedSeconds, bytes, round }: StepReport): void {
    this.steps++;
    this.exposed += exposedSeconds;
    this.bytes += bytes;
    this.rounds += Number(round !== undefined);
  }

  get seconds(): number {
    return (performance.now() - this.began) / 1000;
  }
}

/** What a rank has done in this process. */
interface Done {
  readonly steps: number;
  readonly seconds: number; // in steps
  readonly exposed: number; // of them, waiting for messages
}

const nothingYet: Done = { steps: 0, seconds: 0, exposed: 0 };

/** The vote schemes that measurements chose, each with the longest vote that it counts. */
function chosenVotes({ schemes: { votes } }: TrainingOptimizer): Choice[] {
  const chosen = new Map<string, Choice>();
  for (const choice of "choices" in votes ? (votes as AutoVoteScheme).choices() : [])
    if (choice.question.n >= (chosen.get(choice.scheme)?.question.n ?? 0)) chosen.set(choice.scheme, choice);
  return [...chosen.values()];
}

export class Journal implements AsyncDisposable {
  readonly #recipe: Recipe;
  readonly #group: Group;
  readonly #parts: Reported;
  readonly #terminal: Terminal | undefined; // rank 0 only
  readonly #itemsPerStep: number; // of all ranks
  readonly #began = performance.now();
  readonly #all = new StepSums(); // of this process
  #since = new StepSums(); // since the last line
  #told = nothingYet; // what this rank had done when it last told the others
  #written = nothingYet; // of that, what a line has
  #waited = 0; // seconds for data, before the last line
  #stepSeconds = 0; // of the steps before the last log
  #firstValidation: Record<string, number> | undefined; // metrics by name
  #lastValidation: Record<string, number> = {};
  #best: Validated["best"]; // where the recipe looks at it
  #measureIsDue = false;
  #lineIsDue = false;
  #printedBucketing: string | undefined;
  readonly #printedVotes = new Set<string>();

  constructor(recipe: Recipe, group: Group, parts: Reported) {
    this.#recipe = recipe;
    this.#group = group;
    this.#parts = parts;
    this.#itemsPerStep = recipe.accumulate * parts.data.itemsPerBatch * group.size;
    if (group.rank !== 0) return;
    this.#terminal = openTerminal(process.stdout);
    const { data, run, remarks } = parts;
    if (recipe.save.best || recipe.stop) this.#best = run.validatedBefore?.best;
    run.note = (text) => this.note(text);
    run.sums = () => this.#trained();
    for (const line of openingLines(recipe, group, parts, run.step)) this.#terminal.line(line);
    this.#printVotes(run.step);
    const notes = [...inventoryLines(data.inventory), ...(data.remarks ?? []), ...run.notes, ...remarks];
    for (const note of [...notes, `run ${run.folder}`]) this.note(note);
  }

  /** Prints a line that belongs to no step. */
  note(text: string): void {
    this.#terminal?.line(text);
  }

  /**
   * What this rank tells the others: its means over the steps since it told them what the last line has. A round asks
   * in the middle of a step, which counts; the wait for that round counts in the next one.
   */
  seenSoFar(loss: number): RankMeasures {
    const { meter } = this.#parts;
    const { steps, exposed } = this.#all;
    this.#told = { steps: steps + Number(meter.isInStep), seconds: meter.seconds, exposed };
    const [now, before] = [this.#told, this.#written];
    const a = (done: keyof Done) => (now[done] - before[done]) / Math.max(1, now.steps - before.steps);
    return { loss, compute: a("seconds") - a("exposed"), exposed: a("exposed") };
  }

  /**
   * Begins a step; the returned function ends it. Every `logEvery` steps the ranks average their losses; with local
   * steps where they meet next.
   */
  start(step: number): (seen: SeenStep) => Promise<void> {
    const { logEvery, measureEvery, steps, stop, evaluate } = this.#recipe;
    const { meter, optimizer } = this.#parts;
    const mayStop = stop !== undefined && evaluate.every > 0 && (step + 1) % evaluate.every === 0;
    this.#lineIsDue ||= step % logEvery === 0 || step + 1 === steps || mayStop;
    this.#measureIsDue ||= measureEvery > 0 && step % measureEvery === 0;
    const meets = optimizer.meets(step);
    const measures = this.#measureIsDue && meets && !isBetterMeasuredNext(optimizer, step);
    meter.begin(step, { samplesVotes: measures && this.#group.size > 1 });
    return async (seen) => {
      meter.end();
      if (measures) await this.#measure(step);
      for (const sums of [this.#all, this.#since]) sums.add(seen);
      if (this.#lineIsDue && meets) await this.#write(step, seen);
      if (this.#stepSeconds > 0) this.#terminal?.moved(step + 1, steps, this.#left(step));
    };
  }

  async #measure(step: number): Promise<void> {
    this.#measureIsDue = false;
    const { optimizer, meter, run } = this.#parts;
    const line = await this.aside(() => measure(this.#group, optimizer, { step, votes: meter.votes }));
    if (line) run.log({ step, ...line });
  }

  /** Ends the steps since the last line: gathers what the ranks have seen, logs the means, and prints some of them. */
  async #write(step: number, seen: SeenStep): Promise<void> {
    this.#lineIsDue = false;
    const { data, facts, meter, run } = this.#parts;
    const ranks: (MeasuredRanks & { step?: number }) | undefined = facts
      ? facts.latest
      : await gatherRanks(this.#group, this.seenSoFar(seen.loss));
    this.#written = this.#told;
    const parts = meter.take(this.#since.steps);
    const line = this.#terminal && ranks && this.#line(step, seen, ranks, parts);
    this.#since = new StepSums();
    this.#waited = data.waitedSeconds;
    if (!line) return;
    run.log(line);
    this.#printBucketing(step);
    this.#printVotes(step);
    this.#stepSeconds = line.step_seconds;
    // The most important values first: what does not fit on a terminal is left out.
    this.#terminal!.logged(step + 1, this.#recipe.steps, {
      loss: line["train/loss"].toFixed(4),
      ms_a_step: (1000 * line.step_seconds).toFixed(0),
      left: this.#left(step),
      [`${data.item}s_per_second`]: Math.round(this.#itemsPerStep / line.step_seconds).toLocaleString("en-US"),
      waiting: `${Math.round(100 * line.exposed_fraction)}%`,
      sent: bytesText(line.sent_bytes),
      grad_norm: line.grad_norm.toFixed(3),
      lr: line.lr.toExponential(2),
    });
  }

  /** The line of metrics.jsonl for the steps since the one before. */
  #line(step: number, seen: SeenStep, ranks: MeasuredRanks & { step?: number }, parts: PartTimes) {
    const { steps, seconds, exposed, bytes, rounds } = this.#since;
    const { item, waitedSeconds } = this.#parts.data;
    const link = emulatedLinkText(this.#group);
    return {
      step,
      "train/loss": ranks.loss,
      lr: seen.lr,
      grad_norm: seen.gradientNorm,
      [`${item}s_per_second`]: (steps * this.#itemsPerStep) / seconds,
      step_seconds: seconds / steps,
      exposed_fraction: exposed / seconds,
      data_fraction: (waitedSeconds - this.#waited) / seconds,
      sent_bytes: seen.round ? bytes / steps : seen.bytes,
      messages: seen.messages,
      ...(seen.round && {
        "local/loss_step": ranks.step,
        "local/round_bytes": seen.round.bytes,
        "local/fragment": seen.round.fragment,
        "local/rounds": rounds,
        "local/wait_seconds": exposed / rounds,
      }),
      ...this.#trained(),
      ...(link !== undefined && { emulated_link: link }),
      ...Object.fromEntries(Object.entries(parts).map(([part, seconds]) => [`time/${part}`, seconds])),
      "time/exposed": exposed / steps,
      ...ranks.measured,
    };
  }

  /** What all steps of the run have cost, also before it was resumed. */
  #trained(): Sums {
    const { elapsed_seconds = 0, total_bytes = 0 } = this.#parts.run.logged;
    return { elapsed_seconds: elapsed_seconds + this.#all.seconds, total_bytes: total_bytes + this.#all.bytes };
  }

  /** The time that the remaining steps will take, if they are as fast as those before the last log. */
  #left(step: number): string {
    return durationText(this.#stepSeconds * (this.#recipe.steps - step - 1));
  }

  /** Prints which scheme counts the votes, and why: at the start, and when the votes have become longer. */
  #printVotes(step: number): void {
    for (const { scheme, why } of this.#group.size > 1 ? chosenVotes(this.#parts.optimizer) : []) {
      if (this.#printedVotes.has(why)) continue;
      this.#printedVotes.add(why);
      this.#terminal!.line(`votes are counted by ${scheme}: ${why}`);
      this.#parts.run.log({ step, "exchange/vote": scheme, "exchange/why": why });
    }
  }

  /** Prints the size of the buckets once the optimizer has chosen it. */
  #printBucketing(step: number): void {
    const { bucketing } = this.#parts.optimizer;
    if (bucketing === undefined || bucketing === this.#printedBucketing) return;
    this.#printedBucketing = bucketing;
    this.#terminal!.line(`from now on ${bucketing}`);
    this.#parts.run.log({ step, bucketing });
  }

  /** Does work that belongs to no step; its time counts for no step. */
  async aside<T>(work: () => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await work();
    } finally {
      for (const sums of [this.#all, this.#since]) sums.began += performance.now() - began;
    }
  }

  /** The validation loss after `step` steps is the lowest so far, where the recipe looks at that. */
  isBest(step: number, loss: number): void {
    this.#best = { step, loss };
    if (this.#terminal) this.#parts.run.log({ step, "best/step": step, "best/loss": loss });
  }

  /** A signal ends the run after `step` steps. On every rank. */
  async stopped(step: number, signal: string): Promise<void> {
    const skipped = await skippedSamples(this.#parts.data, this.#group);
    const text = skippedText(skipped, this.#parts.data);
    if (text) this.note(`skipped: ${text}`);
    this.note(`${signal}: ends after ${step} steps`);
    if (this.#terminal) this.#parts.run.log({ step, stopped: signal, ...(text && { skipped: skipped.length }) });
  }

  /** The run's section `stop` ends it after `step` steps, before its last one. */
  endsEarly(step: number, { key, why }: { key: string; why: string }): void {
    this.note(`ends after ${step} steps: ${why}; to go on, resume it with another ${key}`);
    if (this.#terminal) this.#parts.run.log({ step, stopped: key });
  }

  /** The save after `step` steps could not be made. */
  unsaved(step: number, why: string): void {
    this.note(`step ${step} could not be saved: ${why}; the run goes on, and tries again at the next save`);
  }

  /** Runs `write`, which belongs to no step, and reports the file, or that it could not be written. */
  async traced(write: () => Promise<string | undefined>): Promise<void> {
    const file = await this.aside(write).catch((error: unknown) => {
      if (!(error instanceof CheckpointError)) throw error;
      this.note(`the trace could not be written: ${sentence(error)}; the run goes on without it`);
      return undefined;
    });
    if (file !== undefined) this.note(`trace ${file}: Perfetto and chrome://tracing open it`);
  }

  /**
   * Runs `evaluate`, and reports and returns its metrics; does nothing where no data is held out. `isLogged`: whether
   * metrics.jsonl gets a line; a resumed run is evaluated once more, and has that line already.
   */
  async evaluated(
    step: number,
    evaluate: () => Promise<Record<string, number>>,
    { isLogged = true } = {},
  ): Promise<Record<string, number> | undefined> {
    const { data, model } = this.#parts;
    if (data.validationUnits === 0) return undefined;
    const metrics = await this.aside(evaluate);
    this.#firstValidation = { ...metrics, ...this.#firstValidation };
    this.#lastValidation = metrics;
    if (!this.#terminal) return metrics;
    const values = Object.entries(metrics);
    const own = model.metricUnits(data.unit);
    const units = { ...own, ...ofAverage(own) };
    if (isLogged)
      this.#parts.run.log({ step, ...Object.fromEntries(values.map(([name, value]) => [`val/${name}`, value])) });
    this.#terminal.fact(
      { step, ...Object.fromEntries(values.map(([name, value]) => [`validation_${name}`, value.toFixed(4)])) },
      `validation ${values.map(([name, value]) => `${name} ${value.toFixed(4)} ${units[name]}`).join(", ")} after ${step} steps`,
    );
    return metrics;
  }

  /**
   * Prints the end of a run after `step` steps: its last metrics, its cost, a sample of the model's text, and the
   * folder of its files. On every rank.
   */
  async finish(step: number): Promise<void> {
    const skipped = await skippedSamples(this.#parts.data, this.#group);
    if (!this.#terminal) return;
    if (skipped.length > 0) this.#parts.run.log({ step, skipped: skipped.length });
    const summary = await runSummary(this.#recipe, this.#group, this.#parts, this.#parts.run, {
      step,
      seconds: (performance.now() - this.#began) / 1000,
      bytesSent: this.#all.steps > 0 ? this.#all.bytes / this.#all.steps : undefined,
      validation: { first: this.#firstValidation ?? {}, last: this.#lastValidation, best: this.#best },
      skipped,
    });
    this.#terminal.summary(summary);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#terminal?.close();
  }
}
