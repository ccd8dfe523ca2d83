/**
 * α and β of the network that a group of ranks really has, in half a second, and how fast this machine counts votes.
 *
 * All ranks work at once, as they do in an exchange, and agree on the slowest one's times, so that each has the same numbers, bit for
 * bit, and whatever they choose by them is the same everywhere.
 */
import { bf16, count, majority, sign } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import { Bits } from "../bits.ts";
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
}

export interface Measured {
  readonly link: LinkCost;
  readonly codec: CodecCost;
}

const firstBytes = 16_384; // longer than what travels with a header
const mostBytes = 1 << 23;
const enoughSeconds = 0.04; // for a transfer: a token bucket is long empty then, and a clock's tick does not count
const rounds = 7;
const leastBurstSeconds = 1e-3; // a shaper works by ticks of a clock; less is chance

/**
 * All ranks call it at the same point. Takes about a second, half of it for the codecs; longer where ranks share cores, and on links
 * below 1 Mbit/s a few transfers of 16 KiB.
 */
export async function measureLink(group: Group): Promise<Measured> {
  const codec = await measureCodec(group);
  if (group.size === 1) return { link: noLink, codec };
  // Before and after the long ones, so that what changes meanwhile meets both.
  const before = await shortMessages(group, 20);
  const { first, beta, atOnce } = await longMessages(group);
  const after = await shortMessages(group, 0);
  const both = (what: keyof ShortMessages) => (before[what] + after[what]) / 2;
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
async function shortMessages(group: Group, warmUp: number): Promise<ShortMessages> {
  const hops = Math.ceil(Math.log2(group.size));
  const bytes = new Uint8Array(2 * group.size);
  const part = (r: number) => bytes.subarray(r, r + 1);
  const parts = Array.from({ length: 2 * group.size }, (_, r) => part(r));
  const [outgoing, incoming] = [parts.slice(0, group.size), parts.slice(group.size)];
  const scheme = allToAll();
  const ballot = () => scheme.vote(group, new Bits(64 * group.size), { outcome: "plus" });
  for (let k = 0; k < warmUp; k++) await ballot();
  const times: [number, number, number][] = [];
  /** As an exchange meets it: threads have slept while a step computed, and all ranks begin together. */
  const afterQuiet = async (work: () => Promise<unknown>) => {
    await quiet(5);
    await group.barrier();
    return seconds(work);
  };
  for (let k = 0; k < rounds; k++) {
    const barriers = await afterQuiet(() => twice(() => group.barrier()));
    const plain = await afterQuiet(() => twice(() => group.allToAll(outgoing, incoming)));
    times.push([barriers / hops, plain, await afterQuiet(ballot)]);
  }
  const usual = (values: number[]) => values.sort((a, b) => a - b)[rounds >> 1]!;
  const [alpha, together, vote] = await agree(
    group,
    [0, 1, 2].map((kind) => usual(times.map((each) => each[kind]!))),
  );
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
  const [out, into] = [new Uint8Array(mostBytes), new Uint8Array(mostBytes).fill(1)]; // touched: no page faults later
  out.fill(1);
  const { rank, size } = group;
  const [next, before] = [(rank + 1) % size, (rank - 1 + size) % size];
  const only = (memory: Uint8Array, to: number, bytes: number) =>
    Array.from({ length: size }, (_, r) => memory.subarray(0, r === to ? bytes : 0));
  /** Everybody sends to the next rank, so that all links are busy both ways. */
  const transfer = async (bytes: number, times: number) => {
    let fastest = Number.POSITIVE_INFINITY;
    for (let k = 0; k < times; k++) {
      await quiet(5); // a token bucket is full again
      await group.barrier();
      const each = await seconds(() => group.allToAll(only(out, next, bytes), only(into, before, bytes)));
      fastest = Math.min(fastest, each);
    }
    return (await agree(group, [fastest]))[0]!;
  };

  let bytes = firstBytes;
  const first = await transfer(bytes, 5);
  let [shorter, longer] = [first, first];
  let knee: { bytes: number; seconds: number } | undefined; // the first that took more than what is let through at once
  do {
    bytes *= 2;
    shorter = longer;
    longer = await transfer(bytes, longer < enoughSeconds / 8 ? 3 : 1);
    if (longer > first + 0.004) knee ??= { bytes, seconds: longer };
  } while (longer < enoughSeconds && bytes < mostBytes);
  for (let k = 0; k < (longer < 2 * enoughSeconds ? 2 : 1); k++) longer = Math.min(longer, await transfer(bytes, 1));
  // From the first one that is beyond the bucket, or from half of the last one.
  const from = knee && knee.bytes < bytes ? knee : { bytes: bytes / 2, seconds: shorter };
  // A disturbed pair could say that more bytes take less time; what all of them took together is an upper bound then.
  const beta = longer > from.seconds ? (longer - from.seconds) / (bytes - from.bytes) : longer / bytes;
  const atOnce = knee ? Math.max(0, knee.bytes - (knee.seconds - first) / beta) : 0;
  return { first, beta, atOnce };
}

const quiet = (milliseconds: number) => new Promise((done) => setTimeout(done, milliseconds));

/** Of the codecs: local work, but agreed on all the same. */
async function measureCodec(group: Group): Promise<CodecCost> {
  const n = 2 ** 22; // of packed votes
  const many = 2 ** 22; // floats: longer than what a core keeps to itself, as a model is
  const floats = new Float32Array(many).fill(1);
  const signs = new Uint8Array(many / 8);
  const ballots = Array.from({ length: group.size }, () => new Uint8Array(n / 8));
  const halves = new Uint8Array(2 * many);
  const decided = new Uint8Array(n / 8);
  const fields = fieldsOf(group.size, n);
  const works: { [K in keyof CodecCost]: { of: number; work: () => void } } = {
    encode: { of: many, work: () => sign.encode(signs, floats, { zero: "plus" }) },
    decode: { of: many, work: () => sign.decodeAdd(floats, signs) },
    vote: { of: group.size * (n / 8), work: () => majority(decided, ballots, n, { tie: "plus" }) },
    setField: { of: fields.bytes, work: () => setFields(fields.memory, decided, fields.width) },
    compareField: {
      of: fields.bytes,
      work: () => compareFields(decided, fields.memory, fields.width, (c) => 2 * c >= group.size, fields.n),
    },
    encodeHalf: { of: many, work: () => bf16.encode(halves, floats) },
    decodeHalf: { of: many, work: () => bf16.decodeAdd(floats.fill(0), halves) },
  };
  const elsewhere = new Float64Array(2 ** 22); // 32 MiB
  /**
   * Until all ranks have done it, all at once: where they share cores they wait for each other. In memory that no cache holds any more,
   * because an exchange comes after other work.
   */
  const together = async (work: () => void) => {
    const times: number[] = [];
    while (times.length < 3) {
      elsewhere.fill(times.length);
      await group.barrier();
      times.push(
        await seconds(() => {
          work();
          return group.barrier();
        }),
      );
    }
    return Math.min(...times); // what disturbs one of them is no part of it
  };
  const barrier = await together(() => {});
  const usual = async ({ of, work }: { of: number; work: () => void }) => {
    for (let k = 0; k < 2; k++) work(); // until it is warm: loops in JavaScript become several times as fast
    return of === 0 ? 0 : Math.max(0, (await together(work)) - barrier) / of;
  };
  const names = Object.keys(works) as (keyof CodecCost)[];
  const times: number[] = [];
  for (const name of names) times.push(await usual(works[name]));
  const slowest = await agree(group, times);
  return Object.fromEntries(names.map((name, i) => [name, slowest[i]!])) as unknown as CodecCost;
}

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

/** The slowest rank's. */
async function agree(group: Group, times: readonly number[]): Promise<number[]> {
  const slowest = Float64Array.from(times);
  await group.allReduce(slowest, "max");
  return [...slowest];
}

async function twice(work: () => Promise<unknown>): Promise<void> {
  await work();
  await work();
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return (performance.now() - begin) / 1000;
}
