import { type StepExchange, type Watch, watched } from "@terse/exchange";
import type { Bucket } from "./buckets.ts";

/** Looks on while steps are taken: a watch for each bucket, by its place in the order in which they leave. */
export interface StepWatch {
  bucket(place: number): Watch;
}

/** A bucket whose first messages have been requested. */
export interface Departure {
  readonly exchange: StepExchange;
  /** How many times its messages wait for those before: the longest of its algorithms' steps. */
  readonly awaits: number;
  /** The same of the messages that follow from the mean gradients of all buckets. */
  readonly later: number;
  /** The algorithms' steps: done when the bucket's parameters have changed. */
  readonly applied: Promise<unknown>;
}

/**
 * One step, from its first message to its last. A bucket leaves when its gradients are complete and all buckets before it have left: so
 * the ranks make the same requests in the same order, however fast each is. A bucket's later messages follow while backward still runs.
 * The results of the last ones are held until all buckets have theirs and all are good; only then does any parameter change.
 *
 * In the queues of the groups the second messages of a bucket come after the first ones of the next bucket, its third messages after
 * the second ones of that, and so on: an order that depends on no clock, and fills the wire while a bucket computes. Messages that follow from
 * mean gradients, of which all ranks know the norm only when backward has ended, come behind all others.
 */
export class StepUnderWay {
  readonly #buckets: readonly Bucket[];
  readonly #depart: (bucket: Bucket, arrived: Promise<void>) => Departure;
  readonly #agree: () => Promise<void>;
  readonly #watch: StepWatch | undefined;
  readonly #missing: Set<string>[]; // names of the segments whose gradients a bucket waits for
  readonly #left = new Set<string>(); // names of the segments that have left
  readonly #departures: Departure[] = [];
  readonly #arrived = Promise.withResolvers<void>();
  #failure: { error: unknown } | undefined; // of a departure: `ready` is called where nobody catches
  #stepFailure: { error: unknown } | undefined; // of an algorithm's step, the first one

  /**
   * `arrived`: all messages of the step have come, and no parameter has changed. `agree`: once all mean gradients have come, before the messages
   * that follow from them.
   */
  constructor(
    buckets: readonly Bucket[],
    {
      depart,
      agree,
      watch,
    }: {
      depart: (bucket: Bucket, arrived: Promise<void>) => Departure;
      agree: () => Promise<void>;
      watch?: StepWatch | undefined;
    },
  ) {
    this.#arrived.promise.catch(() => {}); // `finish` throws it
    this.#buckets = buckets;
    this.#depart = depart;
    this.#agree = agree;
    this.#watch = watch;
    this.#missing = buckets.map(
      ({ spans }) => new Set(spans.flatMap(({ vector }) => vector.segments.map(({ name }) => name))),
    );
  }

  /** Backward has completed this segment's gradient. */
  ready(segment: string): void {
    for (const missing of this.#missing) missing.delete(segment);
    try {
      if (this.#left.has(segment))
        throw new Error(
          `the gradient of ${segment} has grown after it left: call begin before the last backward of a step`,
        );
      while (!this.#failure && this.#missing[this.#departures.length]?.size === 0) this.#leave();
    } catch (error) {
      this.#failure ??= { error };
    }
  }

  /**
   * Backward has ended: a bucket whose gradient never came leaves with zeros. Resolves to the seconds of waiting for messages, or throws
   * the error of any bucket, on every rank alike.
   */
  async finish(): Promise<number> {
    if (this.#failure) throw this.#failure.error;
    try {
      while (this.#departures.length < this.#buckets.length) {
        this.#leave();
        // Its messages are handed to the wire in an iteration of the event loop of their own: from then on they travel while the next bucket gets ready.
        await nextIteration();
      }
      for (let last = this.#buckets.length; this.#enterBehind(last); last++);
      let seconds = await this.#arrive();
      if (this.#enterLater()) seconds += await secondsOf(this.#agree());
      // Only when compressed means have been put together is it known whether they are finite: before any parameter changes.
      await this.#releaseEarly();
      seconds += await this.#arrive();
      this.#arrived.resolve();
      while (await this.#release()) seconds += await this.#arrive();
      await Promise.all(this.#departures.map(({ applied }) => applied));
      return seconds;
    } catch (error) {
      this.#arrived.reject(error);
      throw error;
    } finally {
      for (const { exchange } of this.#departures) exchange.close();
    }
  }

  /** Waits for all messages that have been asked for, and those that follow from them; resolves to the seconds. */
  async #arrive(): Promise<number> {
    const arrivals = Promise.allSettled(this.#departures.map(({ exchange }) => exchange.arrived()));
    const seconds = await secondsOf(arrivals);
    if (this.#stepFailure) throw this.#stepFailure.error;
    for (const arrival of await arrivals) if (arrival.status === "rejected") throw arrival.reason;
    return seconds;
  }

  /** Hands out mean gradients that more follows from, and what compressed ones are made of. What a bucket makes of them travels while the next one computes. */
  async #releaseEarly(): Promise<void> {
    for (const [place, { exchange }] of this.#departures.entries()) {
      const began = performance.now();
      if (!exchange.release({ early: true })) continue;
      await nextIteration(); // it computes, and asks for messages
      await nextIteration(); // which are handed to the wire
      this.#watch?.bucket(place).saw("update", began, performance.now());
    }
  }

  /** Hands out the results that are held. False when there were none. */
  async #release(): Promise<boolean> {
    const began = performance.now();
    const released = this.#departures.map(({ exchange }) => exchange.release());
    await nextIteration();
    this.#watch?.bucket(this.#buckets.length - 1).saw("update", began, performance.now());
    return released.includes(true);
  }

  #leave(): void {
    const place = this.#departures.length;
    const bucket = this.#buckets[place]!;
    const departure = watched(this.#watch?.bucket(place), "update", () => this.#depart(bucket, this.#arrived.promise));
    for (const { vector } of bucket.spans) for (const { name } of vector.segments) this.#left.add(name);
    departure.applied.catch((error: unknown) => {
      this.#stepFailure ??= { error }; // `finish` throws it
    });
    this.#departures.push(departure);
    departure.exchange.enter();
    this.#enterBehind(place);
  }

  /** The places of the messages that follow from mean gradients. False when there are none. */
  #enterLater(): boolean {
    const rounds = Math.max(0, ...this.#departures.map(({ later }) => later));
    for (let round = 0; round < rounds; round++)
      for (const { exchange, later } of this.#departures) if (round < later) exchange.enter();
    return rounds > 0;
  }

  /** The places of later messages behind the first ones of a bucket: the bucket before has its second ones there. False when none has. */
  #enterBehind(place: number): boolean {
    let any = false;
    for (let round = 1; round <= place; round++) {
      const departure = this.#departures[place - round];
      if (departure && round < departure.awaits) {
        departure.exchange.enter();
        any = true;
      }
    }
    return any;
  }
}

/** How long a promise takes. */
async function secondsOf(promise: Promise<unknown>): Promise<number> {
  const began = performance.now();
  await promise;
  return (performance.now() - began) / 1000;
}

const nextIteration = (): Promise<void> => new Promise((done) => setImmediate(done));
