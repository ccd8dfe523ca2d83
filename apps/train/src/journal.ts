/** What a run says while it goes on: every rank measures, rank 0 speaks. `metrics.jsonl` is the source of truth. */
import { type Group, linkText } from "@terse/collectives";
import { byteTokenizer, type TextData } from "@terse/data";
import type { AutoVoteScheme, Choice } from "@terse/exchange";
import type { Gpt } from "@terse/models";
import type { Optimizer, StepReport } from "@terse/optimizers";
import { bytesText, durationText, printable } from "./format.ts";
import type { Recipe } from "./recipe.ts";
import type { Run } from "./run.ts";
import { continueText } from "./sample.ts";
import { openTerminal, type Terminal } from "./terminal.ts";

interface Parts {
  model: Gpt;
  data: TextData;
  optimizer: Optimizer;
  run: Run;
}

function overlapText({ overlap, bucket }: Recipe, { obstacle }: Optimizer): string {
  if (obstacle === undefined && overlap !== "off") return "messages leave while backward still runs";
  const why = overlap === "off" ? " (overlap is off)" : `: ${obstacle}`;
  return `messages leave after backward${why}${bucket === "auto" ? "; bucket: auto has nothing to choose then" : ""}`;
}

/** Times that were measured on an emulated link must not be taken for this network's own. */
function emulation({ size, emulatedLink }: Group): string | undefined {
  return size > 1 && emulatedLink ? linkText(emulatedLink) : undefined;
}

/** What was chosen by measuring, for the longest vote that goes each way. */
function chosenVotes({ schemes: { votes } }: Optimizer): Choice[] {
  const chosen = new Map<string, Choice>();
  for (const choice of "choices" in votes ? (votes as AutoVoteScheme).choices() : [])
    if (choice.question.n >= (chosen.get(choice.scheme)?.question.n ?? 0)) chosen.set(choice.scheme, choice);
  return [...chosen.values()];
}

export class Journal implements AsyncDisposable {
  readonly #recipe: Recipe;
  readonly #group: Group;
  readonly #parts: Parts;
  readonly #terminal: Terminal | undefined; // rank 0 only
  readonly #began = performance.now();
  #since = { time: performance.now(), steps: 0, exposed: 0 };
  #firstLoss: number | undefined;
  #validation: number | undefined;
  #sent = { steps: 0, bytes: 0 }; // by this process: steps in which momenta are averaged send more than others
  #bucketing: string | undefined; // as it was said
  readonly #votes = new Set<string>(); // the same

  constructor(recipe: Recipe, group: Group, parts: Parts) {
    this.#recipe = recipe;
    this.#group = group;
    this.#parts = parts;
    if (group.rank !== 0) return;
    this.#terminal = openTerminal(process.stdout);
    const { model, data, optimizer, run } = parts;
    const link = emulation(group);
    this.#terminal.line(
      `model ${recipe.model.name}, ${(model.parameterCount() / 1e6).toFixed(2)} M parameters; ` +
        `data ${data.source}, ${bytesText(data.trainBytes.length)} to train on, ${bytesText(data.validationBytes.length)} to validate; ` +
        `${group.size} ${group.size === 1 ? "rank" : "ranks"} over ${group.engine}${link === undefined ? "" : `; the link is emulated, ${link}`}`,
    );
    this.#terminal.line(
      `optimizer ${recipe.optimizer.name}: each rank sends ${bytesText(optimizer.bytesSent)} a step` +
        `${group.size > 1 ? `; 32-bit data parallel would send ${bytesText(optimizer.denseBytes)}` : ""}`,
    );
    if (group.size > 1) this.#terminal.line(overlapText(recipe, optimizer));
    this.#sayVotes(run.step);
    this.#terminal.line(`run ${run.folder}`);
  }

  /** Begins a step; what it returns ends it. Every `logEvery` steps the ranks agree on their mean loss. */
  start(step: number): (seen: { loss: number; lr: number } & StepReport) => Promise<void> {
    const { logEvery, steps, data, accumulate } = this.#recipe;
    return async ({ loss, lr, ...report }) => {
      this.#sent.steps++;
      this.#sent.bytes += report.bytes;
      this.#since.steps++;
      this.#since.exposed += report.exposedSeconds;
      const last = step + 1 === steps;
      if (step % logEvery !== 0 && !last) return;

      const mean = new Float64Array([loss]);
      await this.#group.allReduce(mean);
      if (!this.#terminal) return;
      const seconds = (performance.now() - this.#since.time) / 1000;
      const blockSize = data.blockSize ?? this.#parts.model.shape.context;
      const tokens = this.#since.steps * accumulate * data.batchSize * blockSize * this.#group.size;
      const link = emulation(this.#group);
      const line = {
        step,
        "train/loss": mean[0]! / this.#group.size,
        lr,
        grad_norm: report.gradientNorm,
        tokens_per_second: tokens / seconds,
        step_seconds: seconds / this.#since.steps,
        exposed_fraction: this.#since.exposed / seconds,
        sent_bytes: report.bytes,
        messages: report.messages,
        ...(link !== undefined && { emulated_link: link }),
      };
      this.#since = { time: performance.now(), steps: 0, exposed: 0 };
      this.#parts.run.log(line);
      this.#sayBucketing(step);
      this.#sayVotes(step);
      this.#terminal.progress(step + 1, steps, {
        loss: line["train/loss"].toFixed(4),
        lr: lr.toExponential(2),
        grad_norm: report.gradientNorm.toFixed(3),
        tokens_per_second: Math.round(line.tokens_per_second).toLocaleString("en-US"),
        sent: bytesText(report.bytes),
        exposed: `${Math.round(100 * line.exposed_fraction)}%`,
        left: durationText(line.step_seconds * (steps - step - 1)),
      });
    };
  }

  /** By what votes are counted, and why: at first, and when they have become longer. */
  #sayVotes(step: number): void {
    for (const { scheme, why } of this.#group.size > 1 ? chosenVotes(this.#parts.optimizer) : []) {
      if (this.#votes.has(why)) continue;
      this.#votes.add(why);
      this.#terminal!.line(`votes are counted by ${scheme}: ${why}`);
      this.#parts.run.log({ step, "exchange/vote": scheme, "exchange/why": why });
    }
  }

  /** Once, when the optimizer has seen what its steps take. */
  #sayBucketing(step: number): void {
    const { bucketing } = this.#parts.optimizer;
    if (bucketing === undefined || bucketing === this.#bucketing) return;
    this.#bucketing = bucketing;
    this.#terminal!.line(`from now on ${bucketing}`);
    this.#parts.run.log({ step, bucketing });
  }

  /** Work that is no step: its time counts for no step. */
  async aside<T>(work: () => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await work();
    } finally {
      this.#since.time += performance.now() - began;
    }
  }

  async evaluated(step: number, evaluate: () => Promise<number>): Promise<void> {
    if (this.#parts.data.validationBytes.length === 0) return; // nothing is held out
    const loss = await this.aside(evaluate);
    this.#firstLoss ??= loss;
    this.#validation = loss;
    if (!this.#terminal) return;
    this.#parts.run.log({ step, "val/loss": loss });
    this.#terminal.fact(
      { step, validation_loss: loss.toFixed(4) },
      `validation loss ${loss.toFixed(4)} nats per byte after ${step} steps`,
    );
  }

  /** The last words of a run: how far it came, what it cost, what it writes now, and where its files are. */
  async finish(): Promise<void> {
    if (!this.#terminal) return;
    const { model, data, optimizer, run } = this.#parts;
    const { bytes: length, temperature } = this.#recipe.sample;
    // The first words of the held-out text: of the same kind as what the model has read, but new to it.
    const heldOut = data.validationBytes.length > 0 ? data.validationBytes : data.trainBytes;
    const prompt = byteTokenizer.decode(heldOut.subarray(0, 24));
    const text =
      length > 0 ? await continueText(model, prompt, { bytes: length, temperature, seed: this.#recipe.seed }) : "";
    const sent = this.#sent.steps > 0 ? this.#sent.bytes / this.#sent.steps : optimizer.bytesSent;
    const dense = optimizer.denseBytes;
    this.#terminal.summary({
      ...(this.#validation !== undefined && {
        "validation loss": `${this.#firstLoss?.toFixed(3)} → ${this.#validation.toFixed(3)} nats per byte`,
      }),
      "sent per step":
        this.#group.size === 1
          ? "nothing: one rank"
          : `${bytesText(sent)} a rank; 32-bit Lion would send ${bytesText(dense)} (${(dense / sent).toFixed(1)} ×)`,
      time: `${durationText((performance.now() - this.#began) / 1000)}${emulation(this.#group) ? ` on an emulated link, ${emulation(this.#group)}` : ""}`,
      run: run.folder,
      ...(text && { [`sample after ${JSON.stringify(prompt)}`]: printable(text) }),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#terminal?.close();
  }
}
