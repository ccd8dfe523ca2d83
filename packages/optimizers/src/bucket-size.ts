/**
 * How large buckets are: the standard, and `bucket: "auto"`, from the time of the first steps' backward and the cost of
 * the network.
 */
import type { Group } from "@terse/collectives";
import { bestBuckets, type Measured, measureLink } from "@terse/exchange";
import type { Clipping } from "./clipping/clipping.ts";
import type { FlatParameters } from "./flat-parameters.ts";
import type { Span } from "./parameter-groups.ts";
import { worksOnOwn } from "./rounds.ts";

const leastBucket = 2 ** 18; // elements: 32 KiB of signs, which take longer than their latency even on a fast link
const mostBuckets = 16; // small enough that a bucket's gradients are still in the cache when it is encoded

/** The least number of elements in a bucket, with "auto" until it has chosen another. */
export function leastElements(
  bucket: number | "auto" | undefined,
  { parameters }: FlatParameters,
  ranks: number,
  { limit, by }: Clipping,
): number {
  if (typeof bucket === "number") return bucket;
  // A single rank sends nothing, and kernels are faster over the whole model than over parts of it.
  if (ranks === 1 && !(limit > 0 && by === "bucket")) return parameters.length;
  return Math.max(leastBucket, Math.ceil(parameters.length / mostBuckets));
}

/** Why the size cannot change in the middle of a run, and what to do; undefined where it can. */
export function fixedSize(spans: readonly Span[], { limit, by }: Clipping, overlaps: boolean): string | undefined {
  if (limit > 0 && (by === "bucket" || (by === "previous" && worksOnOwn(spans, 0))))
    return `with clipBy: ${by} the size of buckets would decide how they are clipped: give a number, or set clip to 0`;
  const owner = overlaps && spans.find(({ algorithm, state }) => state.owned && algorithm.splits !== "at segments");
  if (owner) return `the server errors of ${owner.algorithm.name} belong to buckets of one size: give a number`;
  return undefined;
}

const trials = 4; // steps; the first one is slower than all others, and does not count

export class BucketSize {
  readonly #group: Group;
  readonly #elements: number;
  readonly #bytesSent: (elements: number) => number;
  readonly #measured: Measured | undefined;
  readonly #seconds: number[] = []; // of backward, by step
  #began: number | undefined;

  /** `bytesSent`: bytes that rank 0 sends for so many elements, so that all ranks compute alike. */
  constructor(group: Group, elements: number, bytesSent: (elements: number) => number, measured?: Measured) {
    this.#group = group;
    this.#elements = elements;
    this.#bytesSent = bytesSent;
    this.#measured = measured;
  }

  /** A step's backward begins. */
  begin(): void {
    this.#began = performance.now();
  }

  /** The step's backward has ended. True when enough of them have, which is in the same step on every rank. */
  end(): boolean {
    if (this.#began === undefined) return false;
    const seconds = (performance.now() - this.#began) / 1000;
    this.#began = undefined;
    return this.saw(seconds);
  }

  /** Records how long a backward took. */
  saw(seconds: number): boolean {
    this.#seconds.push(seconds);
    return this.#seconds.length >= trials;
  }

  /** All ranks call it together and get the same answer, from the times of the slowest rank. */
  async choose(): Promise<{ elements: number; why: string }> {
    const median = this.#seconds.slice(1).sort((a, b) => a - b)[Math.floor((trials - 1) / 2)]!;
    const slowest = Float64Array.of(median);
    await this.#group.allReduce(slowest, "max");
    const [backwardSeconds] = slowest as unknown as [number];
    const { link } = this.#measured ?? (await measureLink(this.#group));
    const { count, elements, exposedSeconds } = bestBuckets({
      elements: this.#elements,
      backwardSeconds,
      exchangeSeconds: (n) => 2 * link.alphaLong + this.#bytesSent(n) * link.beta, // up and down
    });
    const short = (value: number) => Number(value.toPrecision(3)); // 3500, and not 3.50e+3
    const text = (seconds: number) => `${short(1000 * seconds)} ms`;
    const why = `${count} ${count === 1 ? "bucket" : "buckets"} of ${elements} parameters: backward takes ${text(backwardSeconds)}, a message ${text(link.alphaLong)} and ${short(8e-6 / link.beta)} Mbit/s, so ${text(exposedSeconds)} should be left to wait for`;
    return { elements, why };
  }
}
