/**
 * α and β of the network that a group of ranks really has, and how fast its machines encode, count and add, in less than a second.
 *
 * All ranks work at once, as they do in an exchange, and agree on the slowest one's times, so that each has the same numbers, bit for
 * bit, and whatever they choose by them is the same everywhere.
 */
import { bf16, count, majority, sign } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import { Bits } from "../bits.ts";
import { deliveryOf } from "../schemes/fields.ts";
import { int8Codec } from "../schemes/int8-mean.ts";
import { allToAll } from "../votes/all-to-all.ts";
import { compareFields, setFields } from "../votes/count.ts";

/** What a message costs. Seconds. */
export interface LinkCost {
  /** α: from a rank's call to the last rank's answer, for a message that travels with its header (up to 8 KiB). */
  readonly alpha: number;
  /** The same for a longer message, without its bytes: the receiver makes room first. */
  readonly alphaLong: number;
  /** Every further message that a rank sends at the same time. */
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
const turns = 3; // of the codecs: the first one is the slowest
const leastBurstSeconds = 1e-3; // a shaper works by ticks of a clock; less is chance

/**
 * All ranks call it at the same point. Takes less than a second, a third of it for the codecs; longer where ranks share cores, and on
 * links of 1 Mbit/s or less some transfers of 16 and 32 KiB.
 */
export async function measureLink(group: Group): Promise<Measured> {
  const codec = await measureCodec(group);
  if (group.size === 1) return { link: noLink, codec };
  // Before and after the long ones, so that what disturbs one of them does not meet both.
  const before = await shortMessages(group, 6, 3);
  const { first, beta, atOnce } = await longMessages(group);
  const after = await shortMessages(group, 0, 2);
  const both = (what: keyof ShortMessages) => Math.min(before[what], after[what]);
  const [alpha, perMessage, perExchange] = [both("alpha"), both("perMessage"), both("perExchange")];
  const alone = first - (group.size - 2) * perMessage;
  // Longer than what travels with a header, and yet it took next to nothing for its bytes: they were in a token bucket.
  // More than that let through at once shows in longer ones.
  const firstIsFree = alone - alpha < (firstBytes * beta) / 2;
  const shaped = (firstIsFree || atOnce > 1.5 * firstBytes) && atOnce * beta > leastBurstSeconds;
  const alphaLong = Math.max(alpha, alone - (shaped ? 0 : firstBytes * beta));
  const burst = shaped ? atOnce : 0;
  return { link: { alpha, alphaLong, perMessage, perExchange, beta, burst }, codec };
}

const noLink: LinkCost = { alpha: 0, alphaLong: 0, perMessage: 0, perExchange: 0, beta: 0, burst: 0 };

type ShortMessages = Pick<LinkCost, "alpha" | "perMessage" | "perExchange">;

/** `warmUp`: votes whose time does not count, until JavaScript is as fast as in the middle of a training. */
async function shortMessages(group: Group, warmUp: number, rounds: number): Promise<ShortMessages> {
  const hops = Math.ceil(Math.log2(group.size));
  const bytes = new Uint8Array(2 * group.size);
  const part = (r: number) => bytes.subarray(r, r + 1);
  const parts = Array.from({ length: 2 * group.size }, (_, r) => part(r));
  const [outgoing, incoming] = [parts.slice(0, group.size), parts.slice(group.size)];
  const scheme = allToAll();
  const ballot = () => scheme.vote(group, new Bits(64 * group.size), { outcome: "plus" });
  for (let k = 0; k < warmUp; k++) await ballot();
  const times: [number[], number[], number[]] = [[], [], []];
  /** As an exchange meets it: threads have slept while a step computed, and all ranks begin together. */
  const afterQuiet = async (work: () => Promise<unknown>) => {
    await quiet(5);
    await group.barrier();
    return seconds(work);
  };
  for (let k = 0; k < rounds; k++) {
    times[0].push((await afterQuiet(() => twice(() => group.barrier()))) / hops);
    times[1].push(await afterQuiet(() => twice(() => group.allToAll(outgoing, incoming))));
    times[2].push(await afterQuiet(ballot));
  }
  const [alpha, together, vote] = (await slowest(group, times)).map(usual);
  const each = together! / 2;
  // Two ranks have one message each either way, exchanges are made of all-to-alls, and a vote is one of them; else it is two collectives.
  if (group.size === 2) return { alpha: each, perMessage: 0, perExchange: Math.max(0, vote! - each) };
  return {
    alpha: alpha! / 2,
    perMessage: Math.max(0, each - alpha! / 2) / (group.size - 2),
    perExchange: Math.max(0, vote! - 2 * each),
  };
}

/** T(S) = α + β S from two lengths, so that what a token bucket lets through at once cancels out. */
async function longMessages(group: Group): Promise<{ first: number; beta: number; atOnce: number }> {
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
  let knee: typeof longest | undefined; // the first that took more than what is let through at once
  do {
    bytes = Math.min(mostBytes, bytes * (longest.seconds < enoughSeconds / 16 ? 4 : 2));
    shorter = longest;
    longest = { bytes, seconds: await transfer(bytes, longest.seconds < enoughSeconds ? 3 : 2) };
    if (longest.seconds > first + 0.004) knee ??= longest;
  } while (bytes < mostBytes && longest.seconds < (knee && knee.bytes < bytes ? enoughSeconds : atMostSeconds));
  first = Math.min(first, await transfer(firstBytes, 2));
  // From the first one that is beyond the bucket, or from the last but one.
  const from = knee && knee.bytes < bytes ? knee : shorter;
  const beta = secondsPerByte({ bytes: firstBytes, seconds: first }, from, longest);
  const atOnce = knee ? Math.max(0, knee.bytes - (knee.seconds - first) / beta) : 0;
  return { first, beta, atOnce };
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

/** Of the codecs: local work, but agreed on all the same. */
async function measureCodec(group: Group): Promise<CodecCost> {
  const n = 2 ** 22; // of packed votes
  const many = 2 ** (group.size > 2 ? 21 : 22); // floats: longer than what a core keeps to itself, as a model is
  const floats = new Float32Array(many).fill(1);
  const signs = new Uint8Array(many / 8);
  const ballots = Array.from({ length: group.size }, () => touched(n / 8));
  const halves = new Uint8Array(2 * many);
  const decided = new Uint8Array(n / 8);
  const fields = fieldsOf(group.size, n / 2);
  const inFields = decided.subarray(0, fields.n / 8);
  const int8 = int8Of(group, floats);
  const works: { [K in keyof CodecCost]: { of: number; work: () => void } } = {
    encode: { of: many, work: () => sign.encode(signs, floats, { zero: "plus" }) },
    vote: { of: group.size * (n / 8), work: () => majority(decided, ballots, n, { tie: "plus" }) },
    encodeHalf: { of: many, work: () => bf16.encode(halves, floats) },
    setField: { of: fields.bytes, work: () => setFields(fields.memory, inFields, fields.width) },
    decode: { of: many, work: () => sign.decodeAdd(floats, signs) },
    compareField: {
      of: fields.bytes,
      work: () => compareFields(inFields, fields.memory, fields.width, (c) => 2 * c >= group.size, fields.n),
    },
    decodeHalf: { of: many, work: () => bf16.decodeAdd(floats.fill(0), halves) },
    encodeInt8: { of: int8.n, work: () => int8.write() },
    sumInt8: { of: int8.n, work: () => int8.reduce() },
    decodeInt8: { of: int8.n, work: () => int8.finish() },
  };
  // What is written in JavaScript is compiled while it runs, and several times as fast a few calls later.
  for (let call = 0; call < 8; call++) for (const name of ["setField", "compareField"] as const) works[name].work();
  const names = Object.keys(works) as (keyof CodecCost)[];
  const tasks = [() => {}, ...names.map((name) => works[name].work)]; // first only barriers
  const took = tasks.map((): number[] => []);
  // In turn, so that each finds the caches as others have left them, as in an exchange, and nothing disturbs one of them every time. Until
  // all ranks have done it, all at once: where they share cores they wait for each other.
  for (let turn = 0; turn < turns; turn++)
    for (const [i, work] of tasks.entries()) {
      await group.barrier();
      took[i]!.push(
        await seconds(() => {
          work();
          return group.barrier();
        }),
      );
    }
  const [barrier, ...times] = (await slowest(group, took)).map(usual);
  const each = names.map((name, i) => (works[name].of === 0 ? 0 : Math.max(0, times[i]! - barrier!) / works[name].of));
  return Object.fromEntries(names.map((name, i) => [name, each[i]!])) as unknown as CodecCost;
}

/** Memory that was written to: what never was lies in one page of zeros, which is always in the cache. */
const touched = (bytes: number) => new Uint8Array(bytes).fill(0);

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
    const request = { x, options: { into: x, codec: int8Codec, scale: 1 / group.size }, over: true };
    const delivery = deliveryOf(group, request, units);
    const memory = (sizes: readonly number[]) => sizes.map(touched);
    const [outgoing, results] = [memory(delivery.up), memory(delivery.down)];
    const incoming = memory(new Array<number>(group.size).fill(delivery.up[group.rank]!));
    return {
      n: x.length,
      write() {
        int8Codec.scales(x, units);
        delivery.write(outgoing);
      },
      reduce: () => delivery.reduce(incoming, results[group.rank]!),
      finish: () => delivery.finish(results),
    };
  } catch (error) {
    const nothing = () => {};
    if (error instanceof RangeError) return { n: 0, write: nothing, reduce: nothing, finish: nothing };
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

async function twice(work: () => Promise<unknown>): Promise<void> {
  await work();
  await work();
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return (performance.now() - begin) / 1000;
}
