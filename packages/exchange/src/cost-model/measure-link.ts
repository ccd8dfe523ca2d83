/**
 * α and β of the network that a group of ranks really has, and how fast its machines encode, count and add, in less than a second.
 *
 * All ranks work at once, as they do in an exchange, and agree on the slowest one's times, so that each has the same numbers, bit for
 * bit, and whatever they choose by them is the same everywhere.
 */
import { bf16, count, majority, sign } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import { int8Codec } from "../means/int8-mean.ts";
import { PackedBits } from "../packed-bits.ts";
import { fieldsScheme } from "../sums/fields.ts";
import { allToAll } from "../votes/all-to-all.ts";
import { compareFields, setFields } from "../votes/count.ts";
import { vote } from "../votes/vote.ts";

/** What a message costs. Seconds. */
export interface LinkCost {
  /** α: from a rank's call to the last rank's answer, for a message that travels with its header (up to 8 KiB). */
  readonly alpha: number;
  /** The same for a longer message, without its bytes: the receiver makes room first. */
  readonly alphaLong: number;
  /** Every further message that a rank sends at the same time; not seen while the wire has bytes to carry. */
  readonly perMessage: number;
  /** What an exchange takes beyond its messages: threads that slept wake up, the scheme makes room, finds the parts, hears what has arrived. */
  readonly perExchange: number;
  /** β: a byte. */
  readonly beta: number;
  /** Bytes that a shaped link lets through at once when it has been quiet: a token bucket's. 0 where there is none. */
  readonly burst: number;
}

/** What computing costs. Seconds until the slowest rank has done it, while all of them do. */
export interface CodecCost {
  /** A float to a sign, and back. */
  readonly encode: number;
  readonly decode: number;
  /** A byte of packed votes, of all ranks. */
  readonly vote: number;
  /** A byte of count fields, as wide as so many ranks need: to set them, and to compare them. 0 where there are too many ranks. */
  readonly setField: number;
  readonly compareField: number;
  /** A float to 16 bits, and back into zeros. */
  readonly encodeHalf: number;
  readonly decodeHalf: number;
  /** A float of a mean in int8: to scale and write it, to add up all ranks' as owners, and to read the sum. 0 where there are too many ranks. */
  readonly encodeInt8: number;
  readonly sumInt8: number;
  readonly decodeInt8: number;
}

export interface Measured {
  readonly link: LinkCost;
  readonly codec: CodecCost;
}

const firstBytes = 16_384; // longer than what travels with a header
const mostBytes = 1 << 23;
const enoughSeconds = 0.02; // for a transfer beyond a token bucket: a clock's tick does not count
const atMostSeconds = 0.03; // for one that may still be in it
const kneeSeconds = 0.005; // longer than a short one takes one that is well beyond it
const codecSeconds = 0.12; // for all turns of the codecs but the first, the slowest
const leastBurstSeconds = 1e-3; // a shaper works by ticks of a clock; less is chance

/**
 * All ranks call it at the same point. Takes less than a second, a third of it for the codecs; longer where ranks share cores, and on
 * links of 1 Mbit/s or less some transfers of 16 and 32 KiB.
 */
export async function measureLink(group: Group): Promise<Measured> {
  if (group.size === 1) return { link: noLink, codec: (await measureCodec(group))(0) };
  // Before and after all others, so that what disturbs the machine for a while does not meet all.
  const short = new ShortMessages(group);
  await short.warmUp(10);
  await short.run(4);
  const codec = await measureCodec(group);
  const { first, beta, knee } = await longMessages(group);
  await short.run(first < 1e-3 ? 8 : 2); // as the time allows
  const { alpha, perMessage, perExchange, waking, barrier } = await short.costs();
  const awake = first - waking;
  const others = (group.size - 2) * perMessage; // the empty ones: not seen where the bytes take longer
  // Longer than what travels with a header, and yet it took next to nothing for its bytes: they were in a token bucket.
  // More than that let through at once shows in longer ones.
  const atOnce = knee ? Math.max(0, knee.bytes - (knee.seconds - first + others) / beta) : 0;
  const firstIsFree = awake - others - alpha < (firstBytes * beta) / 2;
  const shaped = (firstIsFree || atOnce > 1.5 * firstBytes) && atOnce * beta > leastBurstSeconds;
  const alphaLong = Math.max(alpha, awake - Math.max(others, shaped ? 0 : firstBytes * beta));
  const burst = shaped ? atOnce : 0;
  return { link: { alpha, alphaLong, perMessage, perExchange, beta, burst }, codec: codec(barrier) };
}

const noLink: LinkCost = { alpha: 0, alphaLong: 0, perMessage: 0, perExchange: 0, beta: 0, burst: 0 };

/** Barriers, all-to-alls of a byte for everybody, and votes of a word for each rank. */
class ShortMessages {
  readonly #group: Group;
  readonly #parts: Uint8Array[];
  readonly #scheme = allToAll();
  // The first after some quiet, and the next.
  readonly #times = { barrier: [[], []], together: [[], []], vote: [[]] } as Record<string, number[][]>;

  constructor(group: Group) {
    this.#group = group;
    const bytes = new Uint8Array(2 * group.size);
    this.#parts = Array.from(bytes, (_, i) => bytes.subarray(i, i + 1));
  }

  /** Votes until JavaScript is as fast as in the middle of a training. */
  async warmUp(votes: number): Promise<void> {
    for (let k = 0; k < votes; k++) await this.#vote();
  }

  async run(rounds: number): Promise<void> {
    const { size } = this.#group;
    const works: Record<string, () => Promise<unknown>> = {
      barrier: () => this.#group.barrier(),
      together: () => this.#group.allToAll(this.#parts.slice(0, size), this.#parts.slice(size)),
      vote: () => this.#vote(),
    };
    for (let k = 0; k < rounds; k++)
      for (const [name, times] of Object.entries(this.#times)) {
        // As an exchange meets it: threads have slept while a step computed, and all ranks begin together.
        await quiet(3);
        await this.#group.barrier();
        for (const each of times) each.push(await seconds(works[name]!));
      }
  }

  /**
   * `waking`: what a message takes longer because threads have slept. An exchange has it once.
   * `barrier`: one soon after another.
   */
  async costs(): Promise<Pick<LinkCost, "alpha" | "perMessage" | "perExchange"> & { waking: number; barrier: number }> {
    const { size } = this.#group;
    const times = Object.values(this.#times).flat();
    const [, barrier = 0, asleep = 0, together = 0, vote = 0] = (await slowest(this.#group, times)).map(usual);
    const waking = Math.max(0, asleep - together);
    // Two ranks have one message each either way, exchanges are made of all-to-alls, and a vote is one of them; else it is two collectives.
    const alpha = size === 2 ? together : barrier / Math.ceil(Math.log2(size));
    const perMessage = size === 2 ? 0 : Math.max(0, together - alpha) / (size - 2);
    const perExchange = Math.max(0, vote - Math.min(2, size - 1) * together);
    return { alpha, perMessage, perExchange, waking, barrier };
  }

  #vote(): Promise<unknown> {
    return vote(this.#scheme, this.#group, new PackedBits(64 * this.#group.size), { outcome: "plus" });
  }
}

/** T(S) = α + β S from two lengths, so that what a token bucket lets through at once cancels out. */
async function longMessages(group: Group): Promise<{ first: number; beta: number; knee: Transfer | undefined }> {
  const [out, into] = [touched(mostBytes), touched(mostBytes)];
  const { rank, size } = group;
  const [next, before] = [(rank + 1) % size, (rank - 1 + size) % size];
  const only = (memory: Uint8Array, to: number, bytes: number) =>
    Array.from({ length: size }, (_, r) => memory.subarray(0, r === to ? bytes : 0));
  let last = 0;
  /** Everybody sends to the next rank, so that all links are busy both ways. */
  const transfer = async (bytes: number, times: number) => {
    const took: number[] = [];
    for (let k = 0; k < times; k++) {
      await quiet(Math.max(7, Math.min(14, 1000 * last))); // until a token bucket is full again: slow links fill it slowly
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
  let knee: Transfer | undefined; // the first that took more than what is let through at once
  do {
    const factor = longest.seconds < enoughSeconds / 2 ? 4 : 2;
    bytes = Math.min(mostBytes, factor * bytes);
    shorter = longest;
    longest = { bytes, seconds: await transfer(bytes, factor * longest.seconds < atMostSeconds ? 3 : 2) };
    if (longest.seconds > first + kneeSeconds) knee ??= longest;
  } while (bytes < mostBytes && longest.seconds < (knee && knee.bytes < bytes ? enoughSeconds : atMostSeconds));
  first = Math.min(first, await transfer(firstBytes, 2));
  // A little more here is much of what a fast link lets through at once.
  if (knee && knee.seconds < enoughSeconds / 2)
    knee = { bytes: knee.bytes, seconds: Math.min(knee.seconds, await transfer(knee.bytes, 3)) };
  // From the first one that is beyond the bucket, or from the last but one.
  const from = knee && knee.bytes < bytes ? knee : shorter;
  const beta = secondsPerByte({ bytes: firstBytes, seconds: first }, from, longest);
  return { first, beta, knee };
}

interface Transfer {
  readonly bytes: number;
  readonly seconds: number;
}

/**
 * β of three transfers, the last two beyond what a token bucket lets through at once. Bytes never become cheaper, so that over all of them
 * they took no more each than at the end: a middle one that was disturbed says otherwise.
 */
export function secondsPerByte(first: Transfer, from: Transfer, longest: Transfer): number {
  const between = (a: Transfer, b: Transfer) => (b.bytes > a.bytes ? (b.seconds - a.seconds) / (b.bytes - a.bytes) : 0);
  const beta = Math.max(between(from, longest), between(first, longest));
  return beta > 0 ? beta : longest.seconds / longest.bytes;
}

const quiet = (milliseconds: number) => new Promise((done) => setTimeout(done, milliseconds));

/** Of the codecs: local work, but agreed on all the same. What it returns wants to know how long a barrier takes. */
async function measureCodec(group: Group): Promise<(barrier: number) => CodecCost> {
  const n = 2 ** 22; // of packed votes
  const many = 2 ** (group.size > 2 ? 21 : 22); // floats: longer than what a core keeps to itself, as a model is
  const floats = new Float32Array(many).fill(1);
  const signs = new Uint8Array(many / 8);
  const ballots = Array.from({ length: group.size }, () => touched(n / 8));
  const halves = new Uint8Array(2 * many);
  const others = new Uint8Array(2 * many).fill(0x3f); // 0.75 in bf16: sums of what is decoded must not grow from turn to turn
  const decided = new Uint8Array(n / 8);
  const fields = fieldsOf(group.size, n / 2);
  const set = ({ memory, width, n }: Fields) => setFields(memory, decided.subarray(0, n / 8), width);
  const compare = ({ memory, width, n }: Fields) =>
    compareFields(decided.subarray(0, n / 8), memory, width, (c) => 2 * c >= group.size, n);
  const int8 = int8Of(group, floats);
  const works: { [K in keyof CodecCost]: { of: number; work: () => void } } = {
    encode: { of: many, work: () => sign.encode(signs, floats, { zero: "plus" }) },
    vote: { of: group.size * (n / 8), work: () => majority(decided, ballots, n, { tie: "plus" }) },
    encodeHalf: { of: many, work: () => bf16.encode(halves, floats) },
    setField: { of: fields.bytes, work: () => set(fields) },
    decode: { of: many, work: () => sign.decodeAdd(floats, signs) },
    compareField: { of: fields.bytes, work: () => compare(fields) },
    decodeHalf: { of: many, work: () => bf16.decodeAdd(floats.fill(0), others) },
    encodeInt8: { of: int8.n, work: () => int8.encode() },
    sumInt8: { of: int8.n, work: () => int8.reduce() },
    decodeInt8: { of: int8.n, work: () => int8.handOut() },
  };
  // What is written in JavaScript is compiled while it runs, and several times as fast a few calls later.
  const few = fieldsOf(group.size, n / 32);
  for (let call = 0; call < 64; call++) for (const work of [set, compare]) work(few);
  const names = Object.keys(works) as (keyof CodecCost)[];
  const took = names.map((): number[] => []);
  // In turn, so that each finds the caches as others have left them, as in an exchange, and nothing disturbs one of them every time. Until
  // all ranks have done it, all at once: where they share cores they wait for each other.
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn++)
      for (const [i, name] of names.entries()) {
        await group.barrier(); // ranks that share a thread have all heard of the one before
        took[i]!.push(
          await seconds(() => {
            works[name].work();
            return group.barrier();
          }),
        );
      }
    return slowest(group, took);
  };
  const once = (await turns(1)).flat().reduce((sum, each) => sum + each, 0);
  const times = (await turns(Math.max(1, Math.min(6, Math.round(codecSeconds / once))))).map(usual);
  return (barrier) => {
    const each = names.map((name, i) => (works[name].of === 0 ? 0 : Math.max(0, times[i]! - barrier) / works[name].of));
    return Object.fromEntries(names.map((name, i) => [name, each[i]!])) as unknown as CodecCost;
  };
}

/** Memory that was written to: what never was lies in one page of zeros, which is always in the cache. */
const touched = (bytes: number) => new Uint8Array(bytes).fill(0);

type Fields = ReturnType<typeof fieldsOf>;

/** Memory for n fields in which so many ranks can be counted; none where there are too many. */
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

/** What a rank computes for a mean of x in int8, with wires of its own; nothing where there are too many ranks. */
function int8Of(group: Group, x: Float32Array) {
  try {
    const units = int8Codec.scales(x);
    const request = { x, options: { into: x, codec: int8Codec, scale: 1 / group.size }, replaces: true };
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

/** Of each time, as many of every kind, the slowest rank's: who began last may have waited for nobody. */
async function slowest(group: Group, times: readonly (readonly number[])[]): Promise<number[][]> {
  const all = Float64Array.from(times.flat());
  await group.allReduce(all, "max");
  const each = times[0]!.length;
  return times.map((_, i) => [...all.subarray(i * each, (i + 1) * each)]);
}

/** The middle one, or the one before the middle. */
const usual = (values: number[]) => values.sort((a, b) => a - b)[(values.length - 1) >> 1]!;

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return (performance.now() - begin) / 1000;
}
