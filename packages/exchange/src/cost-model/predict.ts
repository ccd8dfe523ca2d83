/**
 * Predicts the time of an exchange on a measured network and machine (`measure-link.ts`), on its slowest rank: from its
 * call, just after a barrier, to its result. The counts of bytes are those of the schemes' closed forms; the
 * predictions add which operations overlap.
 *
 *   P ranks, n elements, W = 8 ⌈n / 64⌉ bytes of signs, d planes of the outcome
 *   α: latency of a message; β: seconds per byte; o: each further message; h: overhead of an exchange
 *   t(m, k, s) = α(s) + max((k − 1) o, (m − b) β)   a rank sends m bytes in k messages, the longest of s bytes
 *   α(s) is larger for long messages
 *   b: bytes that the token bucket of a shaped link lets through without delay: its contents, refilled while the link
 *   is idle
 *
 *   all-to-all (P, S)   t((P − 1)/P S, P − 1, S / P)               also an all-gather
 *   ring (P, S)         max of its bytes, 2 (P − 1)/P S β + α, and of 2 (P − 1) steps of a segment (`allReduce`)
 *   server (P, S)       t((P − 1) S, P − 1, S)                     all ranks to one, or one to all
 *
 * The paper's Table 1 counts α for every message of an all-to-all. Here these messages are concurrent: each further one
 * costs only o, and nothing while the wire still has bytes to carry.
 */
import { count as countCodec } from "@terse/codecs";
import { isSmallSum, wireSizes } from "@terse/collectives";
import type { DenseType } from "../means/dense-scheme.ts";
import { int8Codec, int8MeansCost } from "../means/int8-mean.ts";
import { wordsOf } from "../packed-bits.ts";
import { partition } from "../partition.ts";
import { pipelineChunks } from "../votes/all-to-all.ts";
import type { CodecCost, LinkCost, Measured } from "./measure-link.ts";

/** Seconds: in all, of messages (`wire`), and of computing that does not overlap with them. */
export interface Prediction {
  readonly seconds: number;
  readonly wire: number;
  readonly computing: number;
}

export interface Question {
  /** Elements. */
  readonly n: number;
  readonly ranks: number;
  /** d, the bits per element of the outcome: 1 unless given. */
  readonly planes?: number;
  /** Elements of a chunk, as in `AllToAllOptions`. */
  readonly chunk?: number | undefined;
  /** For votes: includes encoding floats to signs and decoding the outcome to floats. */
  readonly floats?: boolean;
}

/** The link of the busiest rank during one exchange. At first its token bucket is full. */
class LinkState {
  readonly cost: LinkCost;
  #tokens: number; // bytes that may pass without delay

  constructor(cost: LinkCost) {
    this.cost = cost;
    this.#tokens = cost.burst;
  }

  /** Sends bytes; returns their seconds on the wire. */
  carry(bytes: number): number {
    const free = Math.min(bytes, this.#tokens);
    this.#tokens -= free;
    return (bytes - free) * this.cost.beta;
  }

  /** Sends nothing for some seconds, while the token bucket fills; returns the seconds. */
  idle(seconds: number): number {
    const { beta, burst } = this.cost;
    if (beta > 0) this.#tokens = Math.min(burst, this.#tokens + seconds / beta);
    return seconds;
  }
}

/** Seconds of concurrent messages from the busiest rank, with `bytes` in all and `longest` bytes in the longest. */
function concurrent(state: LinkState, bytes: number, messages: number, longest: number) {
  if (messages === 0) return 0;
  const { alpha, alphaLong, perMessage } = state.cost;
  const latency = state.idle(longest > wireSizes.inline ? alphaLong : alpha);
  const wire = state.carry(bytes);
  return latency + wire + state.idle(Math.max(0, (messages - 1) * perMessage - wire));
}

/** Every rank sends each rank a part of S bytes; or receives such parts. */
const allToAll = (state: LinkState, P: number, S: number) => concurrent(state, (S * (P - 1)) / P, P - 1, S / P);

/** All ranks send S bytes to one rank, or one rank to all. */
const server = (state: LinkState, P: number, S: number) => concurrent(state, S * (P - 1), P - 1, S);

/** An all-reduce of S bytes: a ring in segments, or direct if it is small. */
function allReduce(state: LinkState, P: number, S: number): number {
  if (isSmallSum(S, P)) return concurrent(state, S * (P - 1), P - 1, S);
  const { alpha, alphaLong, beta } = state.cost;
  const { leastRingSegment, mostRingSegment } = wireSizes;
  const chunk = S / P;
  const segment = Math.min(chunk, mostRingSegment, Math.max(leastRingSegment, chunk / 2));
  const steps = 2 * (P - 1);
  const saved = steps * chunk * beta - state.carry(steps * chunk);
  const atFullRate = alphaLong + steps * chunk * beta;
  const relayed = steps * (alpha + segment * beta) + (chunk - segment) * beta;
  return Math.max(atFullRate, relayed, saved) - saved;
}

/** All ranks' S bytes climb a binomial tree to one rank. A rank sends the bytes of its subtree in one message. */
function climb(cost: LinkCost, P: number, S: number): number {
  const ready = (s: number): number => {
    let free = 0; // the time at which the incoming direction of the link is free again
    const incoming = new LinkState(cost);
    for (let bit = 1; bit < s; bit *= 2) {
      const below = Math.min(bit, s - bit);
      const arrives = ready(below) + concurrent(new LinkState(cost), below * S, 1, below * S);
      free = Math.max(arrives, free + incoming.carry(below * S));
    }
    return free;
  };
  return ready(P);
}

type FullQuestion = Question & { readonly planes: number };
type Scheme = (question: FullQuestion, measured: Measured) => { wire: number; computing: number };

const none = { wire: 0, computing: 0 };

const counting = ({ vote }: CodecCost, bytes: number) => vote * bytes;

/** Predictions of votes, by the schemes' names in `voteSchemes`. */
const votes = {
  /** In chunks: while a chunk is on the wire, the one before is counted. */
  "all-to-all": ({ n, ranks: P, planes, chunk }, { link, codec }) => {
    const chunks = pipelineChunks(n, chunk);
    const state = new LinkState(link);
    let wire = 0;
    let counted = 0; // seconds of counting the last chunk, which overlaps with no other
    for (const { n: elements } of chunks) {
      const S = 8 * wordsOf(elements);
      if (P === 2) {
        wire += concurrent(state, S, 1, S); // both count everything
        counted = counting(codec, 2 * S);
        continue;
      }
      for (let k = 0; k < 1 + planes; k++) wire += allToAll(state, P, 8 * P * ownWords(elements, P));
      counted = counting(codec, S);
    }
    return { wire, computing: counted };
  },

  count: ({ n, ranks: P, planes }, { link, codec }) => {
    const bytes = countCodec({ ranks: P }).wireBytes(n);
    const state = new LinkState(link);
    return {
      wire: concurrent(state, 0, P - 1, 0) + allReduce(state, P, bytes),
      computing: bytes * (codec.setField + planes * codec.compareField),
    };
  },

  "parameter-server": ({ n, ranks: P, planes }, { link, codec }) => {
    const S = 8 * wordsOf(n);
    // Up through the incoming direction of the server's link, and down through the outgoing one, which has been idle.
    const down = new LinkState(link);
    let wire = server(new LinkState(link), P, S);
    for (let k = 0; k < planes; k++) wire += server(down, P, S);
    return { wire, computing: counting(codec, P * S) };
  },

  "parameter-server-efficient": ({ n, ranks: P, planes }, { link, codec }) => {
    const S = 8 * wordsOf(n);
    const state = new LinkState(link);
    let wire = climb(link, P, S);
    // A scatter and an all-gather for each plane.
    for (let k = 0; k < 2 * planes; k++) wire += allToAll(state, P, 8 * P * ownWords(n, P));
    return { wire, computing: counting(codec, P * S) };
  },
} as const satisfies Record<string, Scheme>;

/** Predictions of means, by the type on the wire. */
const means = {
  // Adding overlaps with the wire.
  f32: ({ n, ranks: P }, { link }) => ({ wire: allReduce(new LinkState(link), P, 4 * n), computing: 0 }),
  bf16: half,
  f16: half,
  /** An all-reduce of units, one for each block; then a byte an element to its owner, and two back. */
  int8: ({ n, ranks: P }, { link, codec }) => {
    int8MeansCost([0], P, 0); // RangeError for too many ranks
    const state = new LinkState(link);
    const units = allReduce(state, P, 4 * (Math.ceil(n / int8Codec.parameters.block!) + 1));
    const wire = units + allToAll(state, P, n) + allToAll(state, P, 2 * n);
    return { wire, computing: n * (codec.encodeInt8 + codec.sumInt8 + codec.decodeInt8) };
  },
} as const satisfies Record<DenseType, Scheme>;

function half({ n, ranks: P }: FullQuestion, { link, codec }: Measured) {
  const state = new LinkState(link);
  const wire = allToAll(state, P, 2 * n) + allToAll(state, P, 2 * n);
  return { wire, computing: n * ((1 + 1 / P) * codec.encodeHalf + 2 * codec.decodeHalf) };
}

export type PredictedVote = keyof typeof votes;

/** The schemes of votes whose time can be predicted. */
export const predictedVotes = Object.keys(votes) as PredictedVote[];

/**
 * The time of a vote, from packed signs to the packed outcome. RangeError if there are too many ranks for the scheme.
 */
export function predictVote(scheme: PredictedVote, question: Question, measured: Measured): Prediction {
  return predicted(votes[scheme], question, measured, true);
}

/** The time of a mean of floats. RangeError if there are too many ranks for the type. */
export function predictMean(type: DenseType, question: Question, measured: Measured): Prediction {
  return predicted(means[type], question, measured, false);
}

/**
 * The time of `hierarchical`, with equally many ranks on every host. `inside`: the link between ranks of one host, if
 * it differs from the measured one.
 */
export function predictVoteOfHosts(
  { ranksPerHost: L, ...question }: Question & { readonly ranksPerHost: number },
  measured: Measured,
  inside: LinkCost = measured.link,
): Prediction {
  const votesOfHosts: Scheme = ({ n, ranks: P }, { link, codec }) => {
    const [W, H] = [8 * wordsOf(n), Math.ceil(P / L)];
    const part = 8 * ownWords(n, L);
    const within = new LinkState(inside);
    const between = inside === link ? within : new LinkState(link);
    const round = () => allToAll(within, L, L * part) + allToAll(between, H, part);
    return {
      // Votes go to the owners on a host, from there to the owners on all hosts; the outcome comes back the same way.
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

/** The number of words that the rank with the most words owns. */
function ownWords(n: number, ranks: number): number {
  const starts = partition(n, ranks);
  return Math.max(...starts.slice(1).map((end, r) => end - starts[r]!));
}
