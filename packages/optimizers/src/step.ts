/**
 * One step, from its first message to its last.
 *
 *   leave     A bucket leaves when its gradients are complete and all buckets before it have left. So the ranks make
 *             the same requests in the same order, however fast each is. A bucket's later messages follow while
 *             backward still runs.
 *   means     When all first messages have come, the ranks know the norms of the mean gradients. Messages that depend
 *             on these norms come now.
 *   agreed    When all messages have come, no rank has refused the step: `exchange.agreed()` resolves in every bucket,
 *             and θ changes.
 *
 * In the queues of the groups the second messages of a bucket come after the first ones of the next bucket, its third
 * messages after the second ones of that, and so on: an order that depends on no clock, and fills the wire while a
 * bucket computes. Messages that follow from mean gradients come behind all others.
 */
import { setImmediate as nextIteration } from "node:timers/promises";
import type { Group } from "@terse/collectives";
import {
  type ChosenSchemes,
  enterQueue,
  type RefusalReason,
  StepExchange,
  StepRefusedError,
  type Watch,
  watched,
} from "@terse/exchange";
import { noGrad, type Tensor } from "@terse/tensor";
import { type Bucket, namesIn } from "./buckets.ts";
import type { GradientNorms } from "./clipping/gradient-norms.ts";
import type { FlatParameters } from "./flat-parameters.ts";
import { roundsOf } from "./rounds.ts";
import { runAlgorithm } from "./run-algorithm.ts";

/** Looks on while steps are taken: a watch for each bucket, by its place in the order in which they leave. */
export interface StepWatch {
  bucket(place: number): Watch;
}

export interface StepOptions {
  readonly step: number; // t
  readonly lr: number;
  readonly loss: number; // of this rank
  readonly refusal?: RefusalReason | undefined; // why this rank refuses the step in any case
  readonly group: Group;
  readonly down: Group; // results come down over it
  readonly memory: Tensor; // the arena's gradients
  readonly schemes: ChosenSchemes;
  readonly norms: GradientNorms;
  readonly watch: StepWatch | undefined;
}

/** A bucket whose first messages have been requested. */
interface DepartedBucket {
  readonly exchange: StepExchange;
  readonly first: number; // rounds until it waits for the mean gradients of all buckets
  readonly afterMeans: number; // rounds that follow
  /** The mean gradients of all buckets are known. */
  readonly means: PromiseWithResolvers<void>;
  /** The algorithms' steps wait for the agreement. */
  readonly waits: Promise<unknown>;
  /** The algorithms' steps have changed the bucket's parameters. */
  readonly applied: Promise<unknown>;
}

export class Step {
  readonly #buckets: readonly Bucket[];
  readonly #options: StepOptions;
  readonly #placeOf: ReadonlyMap<string, number>; // of a segment's bucket
  readonly #missing: readonly Set<string>[]; // segments whose gradients a bucket waits for
  readonly #departures: DepartedBucket[] = [];
  readonly #agreed = Promise.withResolvers<void>();
  #unfollow: (() => void) | undefined;
  // The first error, which `finish` throws. The other buckets leave nevertheless, as on other ranks.
  #failure: { error: unknown } | undefined;

  constructor(buckets: readonly Bucket[], options: StepOptions) {
    this.#agreed.promise.catch(() => {}); // `finish` throws it
    this.#buckets = buckets;
    this.#options = options;
    const names = buckets.map(namesIn);
    this.#placeOf = new Map(names.flatMap((ofBucket, place) => ofBucket.map((name) => [name, place] as const)));
    this.#missing = names.map((ofBucket) => new Set(ofBucket));
  }

  get norms(): GradientNorms {
    return this.#options.norms;
  }

  /** From here on a bucket leaves when backward has completed its gradients. */
  follow(flat: FlatParameters): void {
    this.#unfollow = flat.onGradientReady((i) => {
      try {
        this.#ready(flat.segments[i]!.name);
      } catch (error) {
        this.#failure ??= { error };
      }
    });
  }

  #ready(segment: string): void {
    const place = this.#placeOf.get(segment)!;
    if (place < this.#departures.length)
      throw new Error(
        `the gradient of ${segment} has grown after it left: call begin before the last backward of a step`,
      );
    this.#missing[place]!.delete(segment);
    while (this.#missing[this.#departures.length]?.size === 0) this.#leave();
  }

  #leave(): void {
    const place = this.#departures.length;
    const departure = watched(this.#options.watch?.bucket(place), "update", () => this.#depart(place));
    this.#departures.push(departure);
    departure.exchange.enter();
    this.#enterBehind(place);
  }

  /**
   * The places of later messages behind the first ones of a bucket: the bucket before has its second ones there. False
   * when none has.
   */
  #enterBehind(place: number): boolean {
    const behind = this.#departures.slice(0, place).filter(({ first }, i) => place - i < first);
    for (const { exchange } of behind.reverse()) exchange.enter();
    return behind.length > 0;
  }

  /** Starts the steps of a bucket's spans, which make its first requests. */
  #depart(place: number): DepartedBucket {
    const { step, loss, refusal: given, group, norms, watch } = this.#options;
    const bucket = this.#buckets[place]!;
    const { rounds, afterMeans } = roundsOf(bucket, step, norms.clipping);
    const exchange = new StepExchange(group, { ...this.#options, entersByCaller: true, watch: watch?.bucket(place) });
    const refusal = given ?? (Number.isFinite(loss) ? norms.refusalOfOwn(place) : "the loss is not finite");
    if (refusal) {
      // The other ranks wait for this rank's messages, so it still sends them; momenta shall not become NaN.
      exchange.refuse(refusal);
      for (const { g } of bucket.spans) noGrad(() => g.zero_());
    }
    const gradientScale = refusal ? 1 : norms.ownFactor(place);
    const means = Promise.withResolvers<void>();
    const around = { ...this.#options, place, exchange, gradientScale, means: means.promise };
    const steps = bucket.spans.map((span) => runAlgorithm(span, { ...around, agreed: this.#agreed.promise }));
    const waits = Promise.all(steps.map((each) => each.waits));
    const applied = Promise.all(steps.map((each) => each.applied));
    applied.catch((error: unknown) => {
      this.#failure ??= { error };
      exchange.close(); // a step that has failed makes no more requests
      // All ranks refuse a step together. Any other error is this rank's alone, and the others would wait for its
      // messages for ever.
      if (!(error instanceof StepRefusedError)) group.abort(`step ${step} failed: ${String(error)}`);
    });
    for (const promise of [means.promise, waits]) promise.catch(() => {}); // `finish` throws it
    return { exchange, first: Math.max(1, rounds.length - afterMeans), afterMeans, means, waits, applied };
  }

  /**
   * Backward has ended: a bucket whose gradient never came leaves with zeros. Resolves to the seconds of waiting for
   * messages when θ has changed, or throws the error of any bucket, on every rank alike.
   */
  async finish(): Promise<number> {
    this.#unfollow?.();
    try {
      while (this.#departures.length < this.#buckets.length) {
        this.#leave();
        // Its messages are handed to the wire in an iteration of the event loop of their own: from then on they travel
        // while the next bucket gets ready.
        await nextIteration();
      }
      for (let place = this.#buckets.length; this.#enterBehind(place); place++);
      let seconds = await this.#arrive();
      seconds += await this.#knowMeans();
      seconds += await this.#arrive();
      await Promise.all(this.#departures.map(({ waits }) => waits));
      await this.#timed(this.#buckets.length - 1, async () => {
        this.#agreed.resolve();
        await nextIteration();
      });
      await Promise.all(this.#departures.map(({ applied }) => applied));
      return seconds;
    } catch (error) {
      this.#agreed.reject(error);
      for (const { means } of this.#departures) means.reject(error);
      throw error;
    } finally {
      for (const { exchange } of this.#departures) exchange.close();
    }
  }

  /** Waits for all messages that have been asked for, and those that follow from them; resolves to the seconds. */
  async #arrive(): Promise<number> {
    const arrivals = Promise.allSettled(this.#departures.map(({ exchange }) => exchange.arrived()));
    const seconds = await secondsOf(arrivals);
    if (this.#failure) throw this.#failure.error;
    for (const arrival of await arrivals) if (arrival.status === "rejected") throw arrival.reason;
    return seconds;
  }

  /**
   * The ranks agree on the norms of the mean gradients. What a bucket makes of them travels while the next one
   * computes.
   */
  async #knowMeans(): Promise<number> {
    const place = enterQueue(this.#options.group);
    const seconds = await secondsOf(this.norms.agree(place).finally(() => place.leave()));
    const rounds = Math.max(...this.#departures.map(({ afterMeans }) => afterMeans));
    for (let round = 0; round < rounds; round++)
      for (const { exchange, afterMeans } of this.#departures) if (round < afterMeans) exchange.enter();
    for (const [i, { means, afterMeans }] of this.#departures.entries()) {
      if (afterMeans === 0) means.resolve();
      else
        await this.#timed(i, async () => {
          means.resolve();
          await nextIteration(); // it computes, and asks for messages
          await nextIteration(); // which are handed to the wire
        });
    }
    return seconds;
  }

  async #timed(place: number, work: () => Promise<void>): Promise<void> {
    const began = performance.now();
    await work();
    this.#options.watch?.bucket(place).saw("update", began, performance.now());
  }
}

/** How long a promise takes. */
async function secondsOf(promise: Promise<unknown>): Promise<number> {
  const began = performance.now();
  await promise;
  return (performance.now() - began) / 1000;
}
