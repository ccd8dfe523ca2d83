import type { StepExchange } from "@terse/exchange";
import type { Bucket } from "./buckets.ts";

/** A bucket whose messages have been asked for. */
export interface Departure {
  readonly exchange: StepExchange;
  /** The algorithms' steps: done when the bucket's parameters have changed. */
  readonly applied: Promise<unknown>;
}

/**
 * One step, from its first message to its last. A bucket leaves when its own gradients are complete and all buckets before it have
 * left: so every rank asks for the same messages in the same order, however fast each is. What arrives is withheld until all of it is
 * there and good; only then does any parameter change. Steps of several awaits go on together, from one to the next.
 */
export class StepUnderWay {
  readonly #buckets: readonly Bucket[];
  readonly #depart: (bucket: Bucket) => Departure;
  readonly #missing: Set<string>[]; // names of the segments whose gradients a bucket waits for
  readonly #left = new Set<string>(); // names of the segments that have left
  readonly #departures: Departure[] = [];
  #failure: { error: unknown } | undefined; // of a departure: `ready` is called where nobody catches

  constructor(buckets: readonly Bucket[], depart: (bucket: Bucket) => Departure) {
    this.#buckets = buckets;
    this.#depart = depart;
    this.#missing = buckets.map(
      ({ spans }) => new Set(spans.flatMap(({ segments }) => segments.map(({ name }) => name))),
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
   * Backward has ended: what waits for a gradient that never came leaves with zeros. Resolves to the seconds of waiting for messages,
   * or throws what any bucket met, on every rank alike.
   */
  async finish(): Promise<number> {
    if (this.#failure) throw this.#failure.error;
    while (this.#departures.length < this.#buckets.length) {
      this.#leave();
      // Its messages are handed to the wire in a turn of their own: from then on they travel while the next bucket gets ready.
      await nextTurn();
    }
    let seconds = 0;
    do {
      const began = performance.now();
      const arrivals = await Promise.allSettled(this.#departures.map(({ exchange }) => exchange.arrived()));
      seconds += (performance.now() - began) / 1000;
      for (const arrival of arrivals) if (arrival.status === "rejected") throw arrival.reason;
    } while (await this.#release());
    await Promise.all(this.#departures.map(({ applied }) => applied));
    return seconds;
  }

  /** Hands out what has arrived. Whether there was any: a step of several awaits has asked for the next by then. */
  async #release(): Promise<boolean> {
    const released = this.#departures.map(({ exchange }) => exchange.release());
    await nextTurn();
    return released.includes(true);
  }

  #leave(): void {
    const bucket = this.#buckets[this.#departures.length]!;
    const departure = this.#depart(bucket);
    for (const { segments } of bucket.spans) for (const { name } of segments) this.#left.add(name);
    departure.applied.catch(() => {}); // `finish` tells, from the exchange
    this.#departures.push(departure);
  }
}

const nextTurn = (): Promise<void> => new Promise((done) => setImmediate(done));
