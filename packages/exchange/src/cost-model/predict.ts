/**
 * How long an exchange takes on a network and a machine that were measured (`measure-link.ts`), on its slowest rank: from
 * its call, just after a barrier, until it has the result. Same counts of bytes as the schemes' closed forms; here also what waits for what.
 *
 *   P ranks, n elements, W = 8 ⌈n / 64⌉ bytes of signs, d planes of the outcome
 *   α, β, o, h: a message, a byte, one more message, an exchange beyond its messages
 *   t(m, k, s) = α(s) + max((k − 1) o, (m − b) β)   a rank sends m bytes in k messages, s bytes the longest: α(s) has what s takes to begin
 *   b: bytes that a shaped link lets through at once, a token bucket's: what is left of them, and what has come in since
 *
 *   all-to-all (P, S)   t((P − 1)/P S, P − 1, S / P)               an all-gather the same
 *   ring (P, S)         the larger of 2 (P − 1)/P S β + α, which is all it sends, and 2 (P − 1) steps of a segment: see `allReduce`
 *   server (P, S)       t((P − 1) S, P − 1, S)                     everybody to one, or one to everybody
 *
 * The paper's Table 1 counts α for every message of an all-to-all; on networks of today they are under way together, and each costs o,
 * which nobody sees while the wire has bytes to carry.
 */
import { count as countCodec } from "@terse/codecs";
import { int8Codec, int8MeanCost } from "../means/int8-mean.ts";
import { wordsOf } from "../packed-bits.ts";
import { partition } from "../partition.ts";
import { pipelineChunks } from "../votes/all-to-all.ts";
import type { CodecCost, LinkCost, Measured } from "./measure-link.ts";

/** Seconds, by where they go. */
export interface Prediction {
  readonly seconds: number;
  readonly wire: number;
  readonly computing: number;
}

export interface Question {
  /** Elements. */
  readonly n: number;
  readonly ranks: number;
  /** Bits of the outcome, as d: 1 unless given. */
  readonly planes?: number;
  /** Elements that a vote sends at once, as `AllToAllOptions` has it. */
  readonly chunk?: number | undefined;
  /** Of a vote, from floats to floats: with what it takes to encode and to decode them. */
  readonly floats?: boolean;
}

const inlineBytes = 8192; // what travels with its header
const [leastSegment, mostSegment] = [1 << 16, 1 << 18]; // of a ring
const smallSum = 65536; // bytes that a rank sends in a sum of one round

/** The busiest rank's link during one exchange, which begins after some quiet. */
class Line {
  readonly cost: LinkCost;
  #tokens: number; // bytes that may pass at once

  constructor(cost: LinkCost) {
    this.cost = cost;
    this.#tokens = cost.burst;
  }

  /** Seconds that so many bytes take on the wire. */
  carry(bytes: number): number {
    const free = Math.min(bytes, this.#tokens);
    this.#tokens -= free;
    return (bytes - free) * this.cost.beta;
  }

  /** Nothing is sent for so long, which is returned. */
  rest(seconds: number): number {
    const { beta, burst } = this.cost;
    if (beta > 0) this.#tokens = Math.min(burst, this.#tokens + seconds / beta);
    return seconds;
  }
}

/** Of `bytes` in `messages` from the busiest rank at once, the longest of `longest` bytes. */
function together(line: Line, bytes: number, messages: number, longest: number) {
  if (messages === 0) return 0;
  const { alpha, alphaLong, perMessage } = line.cost;
  const latency = line.rest(longest > inlineBytes ? alphaLong : alpha);
  const wire = line.carry(bytes);
  return latency + wire + line.rest(Math.max(0, (messages - 1) * perMessage - wire));
}

/** Everybody gives everybody a part of S bytes; or gets everybody's. */
const allToAll = (line: Line, P: number, S: number) => together(line, (S * (P - 1)) / P, P - 1, S / P);

/** Everybody's S bytes to one rank, or one rank's to everybody. */
const server = (line: Line, P: number, S: number) => together(line, S * (P - 1), P - 1, S);

/** The sum of S bytes, in a ring of segments, or in one round while it is small. */
function allReduce(line: Line, P: number, S: number): number {
  if (S <= inlineBytes && S * (P - 1) <= smallSum) return together(line, S * (P - 1), P - 1, S);
  const { alpha, alphaLong, beta } = line.cost;
  const chunk = S / P;
  const segment = Math.min(chunk, mostSegment, Math.max(leastSegment, chunk / 2));
  const steps = 2 * (P - 1);
  const saved = steps * chunk * beta - line.carry(steps * chunk);
  const carried = alphaLong + steps * chunk * beta;
  const relayed = steps * (alpha + segment * beta) + (chunk - segment) * beta;
  return Math.max(carried, relayed, saved) - saved;
}

/** One rank gets everybody's S bytes up a binomial tree: what a rank has heard it sends on together. */
function climb(cost: LinkCost, P: number, S: number): number {
  const ready = (s: number): number => {
    let free = 0; // when the way in is free again
    const wayIn = new Line(cost);
    for (let bit = 1; bit < s; bit *= 2) {
      const below = Math.min(bit, s - bit);
      const sent = ready(below) + together(new Line(cost), below * S, 1, below * S);
      free = Math.max(sent, free + wayIn.carry(below * S));
    }
    return free;
  };
  return ready(P);
}

type Asked = Question & { readonly planes: number };
type Scheme = (question: Asked, measured: Measured) => { wire: number; computing: number };

const none = { wire: 0, computing: 0 };

const counting = ({ vote }: CodecCost, bytes: number) => vote * bytes;

/** Vote schemes by the names of the registry. */
const votes = {
  /** In chunks: while one is on the wire, the one before is counted. */
  "all-to-all": ({ n, ranks: P, planes, chunk }, { link, codec }) => {
    const chunks = pipelineChunks(n, chunk);
    const line = new Line(link);
    let wire = 0;
    let counted = 0; // what is counted while the next chunk is on the wire
    for (const { n: elements } of chunks) {
      const S = 8 * wordsOf(elements);
      if (P === 2) {
        wire += together(line, S, 1, S); // both count everything
        counted = counting(codec, 2 * S);
        continue;
      }
      for (let k = 0; k < 1 + planes; k++) wire += allToAll(line, P, 8 * P * ownWords(elements, P));
      counted = counting(codec, S);
    }
    return { wire, computing: counted };
  },

  count: ({ n, ranks: P, planes }, { link, codec }) => {
    const bytes = countCodec({ ranks: P }).wireBytes(n);
    const line = new Line(link);
    return {
      wire: together(line, 0, P - 1, 0) + allReduce(line, P, bytes),
      computing: bytes * (codec.setField + planes * codec.compareField),
    };
  },

  "parameter-server": ({ n, ranks: P, planes }, { link, codec }) => {
    const S = 8 * wordsOf(n);
    // Up through the way into the server's link, and down through the way out, which has been quiet.
    const down = new Line(link);
    let wire = server(new Line(link), P, S);
    for (let k = 0; k < planes; k++) wire += server(down, P, S);
    return { wire, computing: counting(codec, P * S) };
  },

  "parameter-server-efficient": ({ n, ranks: P, planes }, { link, codec }) => {
    const S = 8 * wordsOf(n);
    const line = new Line(link);
    let wire = climb(link, P, S);
    for (let k = 0; k < 2 * planes; k++) wire += allToAll(line, P, 8 * P * ownWords(n, P)); // scatters and all-gathers
    return { wire, computing: counting(codec, P * S) };
  },
} as const satisfies Record<string, Scheme>;

/** Means by the type that travels. */
const means = {
  f32: ({ n, ranks: P }, { link }) => ({ wire: allReduce(new Line(link), P, 4 * n), computing: 0 }), // it adds while it waits
  bf16: half,
  f16: half,
  /** Agrees on a unit a block; then a byte an element to its owner, and two back. */
  int8: ({ n, ranks: P }, { link, codec }) => {
    int8MeanCost(0, P, 0); // refuses too many ranks
    const line = new Line(link);
    const units = allReduce(line, P, 4 * (Math.ceil(n / int8Codec.parameters.block!) + 1));
    const wire = units + allToAll(line, P, n) + allToAll(line, P, 2 * n);
    return { wire, computing: n * (codec.encodeInt8 + codec.sumInt8 + codec.decodeInt8) };
  },
} as const satisfies Record<string, Scheme>;

function half({ n, ranks: P }: Asked, { link, codec }: Measured) {
  const line = new Line(link);
  const wire = allToAll(line, P, 2 * n) + allToAll(line, P, 2 * n);
  return { wire, computing: n * ((1 + 1 / P) * codec.encodeHalf + 2 * codec.decodeHalf) };
}

export type PredictedVote = keyof typeof votes;

export const predictedVotes = Object.keys(votes) as PredictedVote[];

/** What a vote takes, from packed signs to the packed outcome. Throws a RangeError where so many ranks cannot vote that way. */
export function predictVote(scheme: PredictedVote, question: Question, measured: Measured): Prediction {
  return predicted(votes[scheme], question, measured, true);
}

/** What a mean of floats takes. Throws a RangeError where so many ranks cannot have it. */
export function predictMean(type: keyof typeof means, question: Question, measured: Measured): Prediction {
  return predicted(means[type], question, measured, false);
}

/**
 * What `hierarchical` takes, with as many ranks on every host. `inside`: the link between ranks of one host, where it is not the one that was
 * measured among all.
 */
export function predictVoteOfHosts(
  { ranksPerHost: L, ...question }: Question & { readonly ranksPerHost: number },
  measured: Measured,
  inside: LinkCost = measured.link,
): Prediction {
  const votesOfHosts: Scheme = ({ n, ranks: P }, { link, codec }) => {
    const [W, H] = [8 * wordsOf(n), Math.ceil(P / L)];
    const part = 8 * ownWords(n, L);
    const within = new Line(inside);
    const between = inside === link ? within : new Line(link);
    const round = () => allToAll(within, L, L * part) + allToAll(between, H, part);
    return {
      // Votes to the owners on a host, from there to the owners on all hosts; the outcome back the same way.
      wire: round() + round(),
      computing: counting(codec, W) + counting(codec, part),
    };
  };
  return predicted(votesOfHosts, question, measured, true);
}

function predicted(scheme: Scheme, question: Question, measured: Measured, isVote: boolean): Prediction {
  const { codec, link } = measured;
  const { wire: messages, computing: counted } =
    question.ranks === 1 ? none : scheme({ planes: 1, ...question }, measured);
  const wire = question.ranks === 1 ? 0 : link.perExchange + messages;
  const computing = counted + (isVote && question.floats ? question.n * (codec.encode + codec.decode) : 0);
  return { seconds: wire + computing, wire, computing };
}

/** The most words that one rank owns. */
function ownWords(n: number, ranks: number): number {
  const starts = partition(n, ranks);
  return Math.max(...starts.slice(1).map((end, r) => end - starts[r]!));
}
