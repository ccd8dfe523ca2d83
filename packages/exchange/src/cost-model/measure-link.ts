/**
 * Measures α and β of a group's network, and the speed at which its machines encode, count and add, in less than a
 * second.
 *
 * All ranks work at the same time, as in an exchange, and take the times of the slowest rank. So all ranks have the
 * same measurements, bit for bit, and make the same choices from them.
 */
import { setTimeout as pause } from "node:timers/promises";
import { bf16, count, majority, sign } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import { carryAlone } from "../kinds/carry-alone.ts";
import { fieldsScheme } from "../kinds/sum-of-fields.ts";
import { vote } from "../kinds/vote.ts";
import { int8Codec } from "../means/int8-mean.ts";
import { PackedBits } from "../packed-bits.ts";
import { allToAll } from "../votes/all-to-all.ts";
import { compareFields, setFields } from "../votes/count.ts";

/** The costs of messages, in seconds. */
export interface LinkCost {
  /**
   * α: from the call to its result on the last rank, for a message that is sent together with its header (up to 8 KiB).
   */
  readonly alpha: number;
  /** α of a longer message, without the time of its bytes: the receiver first provides memory. */
  readonly alphaLong: number;
  /** Each further message that a rank sends at the same time; 0 in effect while the wire still has bytes to carry. */
  readonly perMessage: number;
  /**
   * The overhead of an exchange besides its messages: sleeping threads wake up, the scheme takes memory and lays out
   * the parts.
   */
  readonly perExchange: number;
  /** β: one byte. */
  readonly beta: number;
  /**
   * Bytes that a shaped link lets through without delay after it was idle: the size of its token bucket. 0 without one.
   */
  readonly burst: number;
}

/** The costs of computing, in seconds on the slowest rank, while all ranks compute. */
export interface CodecCost {
  /** Per float: to a sign, and back. */
  readonly encode: number;
  readonly decode: number;
  /** Counting votes, per byte of all ranks' packed votes. */
  readonly vote: number;
  /** Per byte of count fields for this many ranks: to set them, and to compare them. 0 if there are too many ranks. */
  readonly setField: number;
  readonly compareField: number;
  /** Per float: to 16 bits, and back. */
  readonly encodeHalf: number;
  readonly decodeHalf: number;
  /**
   * Per float of a mean in int8: to scale and write it, to add all ranks' levels as an owner, and to read the sum. 0 if
   * there are too many ranks.
   */
  readonly encodeInt8: number;
  readonly sumInt8: number;
  readonly decodeInt8: number;
}

/** Codecs that take no time: predictions then show the network alone. */
export const noComputing: CodecCost = {
  encode: 0,
  decode: 0,
  vote: 0,
  setField: 0,
  compareField: 0,
  encodeHalf: 0,
  decodeHalf: 0,
  encodeInt8: 0,
  sumInt8: 0,
  decodeInt8: 0,
};

/** What `measureLink` measures: the network, and the codecs on this machine. */
export interface Measured {
  readonly link: LinkCost;
  readonly codec: CodecCost;
}

const firstBytes = 16_384; // longer than a message that is sent together with its header
const mostBytes = 1 << 23;
// Seconds of a transfer that exceeds the token bucket: the clock's resolution does not matter then.
const enoughSeconds = 0.02;
const atMostSeconds = 0.03; // a transfer that may still fit in the token bucket
const kneeSeconds = 0.005; // a transfer that is so much longer than a short one exceeds the token bucket
const codecSeconds = 0.12; // all rounds of the codecs except the first, which is the slowest
const leastBurstSeconds = 1e-3; // shapers work in ticks of a clock; a shorter burst is noise

/**
 * Measures a group; all its ranks call it at the same point. Takes less than a second, a third of it for the codecs. It
 * takes longer if ranks share cores, and on links of 1 Mbit/s or less, where it still makes some transfers of 16 and 32
 * KiB.
 */
export async function measureLink(group: Group): Promise<Measured> {
  if (group.size === 1) return { link: noLink, codec: (await measureCodec(group))(0) };
  // Short messages are measured before and after the others, so that a temporary disturbance does not affect all of
  // them.
  const short = new ShortMessages(group);
  await short.warmUp(10);
  await short.run(4);
  const codec = await measureCodec(group);
  const { first, beta, knee } = await longMessages(group);
  await short.run(first < 1e-3 ? 8 : 2); // fewer rounds on slow networks
  const { alpha, perMessage, perExchange, waking, barrier } = await short.costs();
  const awake = first - waking;
  const others = (group.size - 2) * perMessage; // the empty messages, which matter only if the bytes take less time
  // If the first transfer took almost no time for its bytes, they passed a token bucket without delay. Longer transfers
  // show its size.
  const atOnce = knee ? Math.max(0, knee.bytes - (knee.seconds - first + others) / beta) : 0;
  const firstIsFree = awake - others - alpha < (firstBytes * beta) / 2;
  const shaped = (firstIsFree || atOnce > 1.5 * firstBytes) && atOnce * beta > leastBurstSeconds;
  const alphaLong = Math.max(alpha, awake - Math.max(others, shaped ? 0 : firstBytes * beta));
  const burst = shaped ? atOnce : 0;
  return { link: { alpha, alphaLong, perMessage, perExchange, beta, burst }, codec: codec(barrier) };
}

const noLink: LinkCost = { alpha: 0, alphaLong: 0, perMessage: 0, perExchange: 0, beta: 0, burst: 0 };

/** Barriers, all-to-alls of a byte for each rank, and votes of a word for each rank. */
class ShortMessages {
  readonly #group: Group;
  readonly #parts: Uint8Array[];
  readonly #scheme = allToAll();
  // The times of the first call after a pause, and of the next.
  readonly #times = { barrier: [[], []], allToAll: [[], []], vote: [[]] } as Record<string, number[][]>;

  constructor(group: Group) {
    this.#group = group;
    const bytes = new Uint8Array(2 * group.size);
    this.#parts = Array.from(bytes, (_, i) => bytes.subarray(i, i + 1));
  }

  /** Votes until JavaScript is compiled and as fast as during training. */
  async warmUp(votes: number): Promise<void> {
    for (let k = 0; k < votes; k++) await this.#vote();
  }

  async run(rounds: number): Promise<void> {
    const { size } = this.#group;
    const works: Record<string, () => Promise<unknown>> = {
      barrier: () => this.#group.barrier(),
      allToAll: () => this.#group.allToAll(this.#parts.slice(0, size), this.#parts.slice(size)),
      vote: () => this.#vote(),
    };
    for (let k = 0; k < rounds; k++)
      for (const [name, times] of Object.entries(this.#times)) {
        // As before an exchange: threads have slept while a step computed, and all ranks begin together.
        await pause(3);
        await this.#group.barrier();
        for (const each of times) each.push(await seconds(works[name]!));
      }
  }

  /**
   * `waking`: the additional time of a message after threads have slept, once for an exchange.
   * `barrier`: the time of a barrier directly after another.
   */
  async costs(): Promise<Pick<LinkCost, "alpha" | "perMessage" | "perExchange"> & { waking: number; barrier: number }> {
    const { size } = this.#group;
    const times = Object.values(this.#times).flat();
    // `asleep` and `awake`: an all-to-all after a pause, and the next one.
    const [, barrier = 0, asleep = 0, awake = 0, vote = 0] = (await slowest(this.#group, times)).map(median);
    const waking = Math.max(0, asleep - awake);
    // Between two ranks a barrier and an all-to-all are one message each way; the all-to-all is closer to an exchange.
    const alpha = size === 2 ? awake : barrier / Math.ceil(Math.log2(size));
    const perMessage = size === 2 ? 0 : Math.max(0, awake - alpha) / (size - 2);
    // A vote is two collectives, of two ranks one.
    const perExchange = Math.max(0, vote - Math.min(2, size - 1) * awake);
    return { alpha, perMessage, perExchange, waking, barrier };
  }

  #vote(): Promise<unknown> {
    const u = new PackedBits(64 * this.#group.size);
    return carryAlone(vote, this.#group, u, { outcome: "plus" }, { schemes: { votes: this.#scheme } });
  }
}

/**
 * β from transfers of several lengths: T(S) = α + β S. The bytes that a token bucket lets through without delay cancel
 * out.
 */
async function longMessages(group: Group): Promise<{ first: number; beta: number; knee: Transfer | undefined }> {
  const [out, into] = [touched(mostBytes), touched(mostBytes)];
  const { rank, size } = group;
  const [next, before] = [(rank + 1) % size, (rank - 1 + size) % size];
  const only = (memory: Uint8Array, to: number, bytes: number) =>
    Array.from({ length: size }, (_, r) => memory.subarray(0, r === to ? bytes : 0));
  let last = 0;
  /** Every rank sends to the next one, so that all links are busy in both directions. Returns the shortest time. */
  const transfer = async (bytes: number, times: number) => {
    const took: number[] = [];
    for (let k = 0; k < times; k++) {
      // Until a token bucket is full again; slow links fill it slowly.
      await pause(Math.max(7, Math.min(14, 1000 * last)));
      await group.barrier();
      last = await seconds(() => group.allToAll(only(out, next, bytes), only(into, before, bytes)));
      took.push(last);
    }
    const [each] = await slowest(group, [took]);
    return Math.min(...each!);
  };

  let bytes = firstBytes;
  let first = await transfer(bytes, 3);
  let longest = { bytes, seconds: first };
  let shorter = longest;
  let knee: Transfer | undefined; // the first transfer that exceeds the token bucket
  do {
    const factor = longest.seconds < enoughSeconds / 2 ? 4 : 2;
    bytes = Math.min(mostBytes, factor * bytes);
    shorter = longest;
    longest = { bytes, seconds: await transfer(bytes, factor * longest.seconds < atMostSeconds ? 3 : 2) };
    if (longest.seconds > first + kneeSeconds) knee ??= longest;
  } while (bytes < mostBytes && longest.seconds < (knee && knee.bytes < bytes ? enoughSeconds : atMostSeconds));
  first = Math.min(first, await transfer(firstBytes, 2));
  // On a fast link a small error of this time is a large error of the burst.
  if (knee && knee.seconds < enoughSeconds / 2)
    knee = { bytes: knee.bytes, seconds: Math.min(knee.seconds, await transfer(knee.bytes, 3)) };
  // From the first transfer that exceeds the bucket, or from the last but one.
  const from = knee && knee.bytes < bytes ? knee : shorter;
  const beta = secondsPerByte({ bytes: firstBytes, seconds: first }, from, longest);
  return { first, beta, knee };
}

interface Transfer {
  readonly bytes: number;
  readonly seconds: number;
}

/**
 * β from three transfers, of which the last two exceed a token bucket. Later bytes cost at least as much as the
 * average; a disturbed middle transfer can make them look cheaper, so the larger of both costs is taken.
 */
export function secondsPerByte(first: Transfer, from: Transfer, longest: Transfer): number {
  const between = (a: Transfer, b: Transfer) => (b.bytes > a.bytes ? (b.seconds - a.seconds) / (b.bytes - a.bytes) : 0);
  const beta = Math.max(between(from, longest), between(first, longest));
  return beta > 0 ? beta : longest.seconds / longest.bytes;
}

/**
 * The costs of the codecs: local work, but with the times of the slowest rank. The result takes the time of a barrier,
 * to subtract it.
 */
async function measureCodec(group: Group): Promise<(barrier: number) => CodecCost> {
  const n = 2 ** 22; // packed votes
  const many = 2 ** (group.size > 2 ? 21 : 22); // floats: more than a core's cache holds, like a model
  const floats = new Float32Array(many).fill(1);
  const signs = new Uint8Array(many / 8);
  const votes = Array.from({ length: group.size }, () => touched(n / 8));
  const halves = new Uint8Array(2 * many);
  const others = new Uint8Array(2 * many).fill(0x3f); // 0.75 in bf16
  const decided = new Uint8Array(n / 8);
  const fields = fieldsOf(group.size, n / 2);
  const set = ({ memory, width, n }: Fields) => setFields(memory, decided.subarray(0, n / 8), width);
  const compare = ({ memory, width, n }: Fields) =>
    compareFields(decided.subarray(0, n / 8), memory, width, (c) => 2 * c >= group.size, n);
  const int8 = int8Of(group, floats);
  const works: { [K in keyof CodecCost]: { of: number; work: () => void } } = {
    encode: { of: many, work: () => sign.encode(signs, floats, { zero: "plus" }) },
    vote: { of: group.size * (n / 8), work: () => majority(decided, votes, n, { tie: "plus" }) },
    encodeHalf: { of: many, work: () => bf16.encode(halves, floats) },
    setField: { of: fields.bytes, work: () => set(fields) },
    decode: { of: many, work: () => sign.decodeAdd(floats, signs) },
    compareField: { of: fields.bytes, work: () => compare(fields) },
    decodeHalf: { of: many, work: () => bf16.decodeAdd(floats.fill(0), others) },
    encodeInt8: { of: int8.n, work: () => int8.encode() },
    sumInt8: { of: int8.n, work: () => int8.reduce() },
    decodeInt8: { of: int8.n, work: () => int8.handOut() },
  };
  // JavaScript is compiled while it runs, and is several times as fast after some calls.
  const few = fieldsOf(group.size, n / 32);
  for (let call = 0; call < 64; call++) for (const work of [set, compare]) work(few);
  const names = Object.keys(works) as (keyof CodecCost)[];
  const took = names.map((): number[] => []);
  // The works alternate, so that each finds the caches as others have left them, as in an exchange. Each is measured
  // until all ranks have done it, because ranks that share cores wait for each other.
  const run = async (rounds: number) => {
    for (let round = 0; round < rounds; round++)
      for (const [i, name] of names.entries()) {
        await group.barrier(); // all ranks, also those that share a thread, have finished the work before
        took[i]!.push(
          await seconds(() => {
            works[name].work();
            return group.barrier();
          }),
        );
      }
    return slowest(group, took);
  };
  const once = (await run(1)).flat().reduce((sum, each) => sum + each, 0);
  const times = (await run(Math.max(1, Math.min(6, Math.round(codecSeconds / once))))).map(median);
  return (barrier) => {
    const each = names.map((name, i) => (works[name].of === 0 ? 0 : Math.max(0, times[i]! - barrier) / works[name].of));
    return Object.fromEntries(names.map((name, i) => [name, each[i]!])) as unknown as CodecCost;
  };
}

/** Memory that has been written to. Untouched memory is one page of zeros, which is always in the cache. */
const touched = (bytes: number) => new Uint8Array(bytes).fill(0);

type Fields = ReturnType<typeof fieldsOf>;

/** Memory for n fields that can count this many ranks; none if there are too many. */
function fieldsOf(ranks: number, n: number) {
  try {
    const codec = count({ ranks });
    const bytes = codec.wireBytes(n);
    const { width = 1 } = codec.parameters;
    return { width, n, bytes, memory: width === 16 ? new Uint16Array(n) : new Uint8Array(bytes) };
  } catch (error) {
    if (error instanceof RangeError) return { width: 8, n: 0, bytes: 0, memory: new Uint8Array() };
    throw error;
  }
}

/** The computing of one rank for a mean of x in int8, without messages; nothing if there are too many ranks. */
function int8Of(group: Group, x: Float32Array) {
  try {
    const units = int8Codec.scales(x);
    const request = { x, options: { codec: int8Codec, scale: 1 / group.size } };
    const scheme = fieldsScheme(group, request, units);
    const memory = (sizes: readonly number[]) => sizes.map(touched);
    const [outgoing, results] = [memory(scheme.up), memory(scheme.down)];
    const incoming = memory(new Array<number>(group.size).fill(scheme.up[group.rank]!));
    return {
      n: x.length,
      encode() {
        int8Codec.scales(x, units);
        scheme.encode(outgoing);
      },
      reduce: () => scheme.reduce(incoming, results[group.rank]!),
      handOut: () => scheme.handOut(results),
    };
  } catch (error) {
    const nothing = () => {};
    if (error instanceof RangeError) return { n: 0, encode: nothing, reduce: nothing, handOut: nothing };
    throw error;
  }
}

/**
 * The maximum over ranks of every single time; all kinds have equally many. The rank that begins last does not wait, so
 * its time is too short.
 */
async function slowest(group: Group, times: readonly (readonly number[])[]): Promise<number[][]> {
  const all = Float64Array.from(times.flat());
  await group.allReduce(all, "max");
  const each = times[0]!.length;
  return times.map((_, i) => [...all.subarray(i * each, (i + 1) * each)]);
}

/** The median; of an even number of values the lower one. */
const median = (values: number[]) => values.sort((a, b) => a - b)[(values.length - 1) >> 1]!;

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return (performance.now() - begin) / 1000;
}
