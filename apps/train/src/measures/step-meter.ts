/**
 * Times the parts of every training step on this rank: those of the loop (data, forward, backward) and, as the
 * optimizer's watch, those of its messages. A trace gets each part, if there is one.
 */
import type { Part as MessagePart, PackedBits, Watch } from "@terse/exchange";
import type { StepWatch } from "@terse/optimizers";
import type { Trace } from "../trace/trace.ts";
import { type PartTimes, parts, type StepPart } from "./step-parts.ts";
import { VoteSample } from "./vote-sample.ts";

export class StepMeter implements StepWatch {
  readonly #trace: Trace | undefined;
  readonly #watches: BucketWatch[] = [];
  #sums = zeros(); // milliseconds, since `take`
  #busy = 0; // milliseconds of all steps
  #onWire: (readonly [began: number, ended: number])[] = []; // collectives of the step under way
  #began: number | undefined; // of the step under way
  #votes: VoteSample | undefined;

  constructor(trace?: Trace) {
    this.#trace = trace;
  }

  /** A step begins. `samplesVotes`: a sample of the votes that it sends is kept. */
  begin(step: number, { samplesVotes = false }: { samplesVotes?: boolean } = {}): void {
    this.#began = performance.now();
    this.#votes = samplesVotes ? new VoteSample() : undefined;
    this.#trace?.begin(step);
  }

  /** Called at the end of a step. Sends nothing. */
  end(): void {
    const now = performance.now();
    this.#sums.wire += lengthOfUnion(this.#onWire);
    this.#onWire = [];
    const began = this.#began ?? now;
    this.#began = undefined;
    this.#busy += now - began;
    this.#trace?.saw("step", began, now);
  }

  /** The votes that the last step has sent, where it was to keep them. */
  get votes(): VoteSample | undefined {
    return this.#votes;
  }

  /** Times a part of the loop, until its promise settles. */
  async time<T>(part: "data" | "forward" | "backward", work: () => T | Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await work();
    } finally {
      this.saw(part, began, performance.now());
    }
  }

  saw(part: StepPart, began: number, ended: number, bucket?: number): void {
    if (part === "wire") this.#onWire.push([began, ended]);
    else this.#sums[part] += ended - began;
    this.#trace?.saw(part, began, ended, bucket);
  }

  bucket(place: number): Watch {
    this.#watches[place] ??= new BucketWatch(this, place);
    return this.#watches[place];
  }

  /** Whether a step is under way. */
  get isInStep(): boolean {
    return this.#began !== undefined;
  }

  /** Of all steps, with what has passed of the one under way. */
  get seconds(): number {
    const underWay = this.#began === undefined ? 0 : performance.now() - this.#began;
    return (this.#busy + underWay) / 1000;
  }

  /** Mean seconds a step of each part, over `steps` steps since the last call. */
  take(steps: number): PartTimes {
    const means = parts.map((part) => [part, this.#sums[part] / 1000 / steps]);
    this.#sums = zeros();
    return Object.fromEntries(means) as Record<StepPart, number>;
  }
}

class BucketWatch implements Watch {
  readonly #meter: StepMeter;
  readonly #place: number;

  constructor(meter: StepMeter, place: number) {
    this.#meter = meter;
    this.#place = place;
  }

  saw(part: MessagePart, began: number, ended: number): void {
    this.#meter.saw(part, began, ended, this.#place);
  }

  get wantsVotes(): boolean {
    return this.#meter.votes !== undefined;
  }

  votes(u: PackedBits): void {
    this.#meter.votes!.add(this.#place, u);
  }
}

const zeros = () => Object.fromEntries(parts.map((part) => [part, 0])) as Record<StepPart, number>;

/** How long at least one interval was under way. */
export function lengthOfUnion(intervals: readonly (readonly [began: number, ended: number])[]): number {
  let [length, until] = [0, Number.NEGATIVE_INFINITY];
  for (const [began, ended] of intervals.toSorted(([a], [b]) => a - b)) {
    if (ended <= until) continue;
    length += ended - Math.max(began, until);
    until = ended;
  }
  return length;
}
