/** The exchanges whose times are predicted and measured. */
import type { Group } from "@terse/collectives";
import {
  carryAlone,
  dense,
  hierarchical,
  type Measured,
  mean,
  PackedBits,
  type Prediction,
  predictedVotes,
  predictMean,
  predictVote,
  predictVoteOfHosts,
  type VoteSchemeEntry,
  vote,
  voteSchemes,
} from "@terse/exchange";

export interface Exchange {
  readonly name: string;
  predict(n: number, ranks: number, measured: Measured): Prediction;
  /** Allocates the memory of an exchange; the returned function runs it. */
  prepare(group: Group, n: number): () => Promise<unknown>;
  /** The number of ranks that it needs; any number unless given. */
  readonly ranks?: number;
  close?(group: Group): Promise<void>;
}

const votes = predictedVotes.map((scheme): Exchange => {
  const votes = (voteSchemes[scheme] as VoteSchemeEntry).create({});
  return {
    name: `vote ${scheme}`,
    predict: (n, ranks, measured) => predictVote(scheme, { n, ranks }, measured),
    prepare(group, n) {
      const u = new PackedBits(n);
      return () => carryAlone(vote, group, u, { outcome: "plus" }, { schemes: { votes } });
    },
  };
});

/** Two hosts that vote. */
const votesOfHosts = hierarchical({ ranksPerHost: 2 });
const ofHosts: Exchange = {
  name: "vote hierarchical",
  ranks: 4,
  predict: (n, ranks, measured) => predictVoteOfHosts({ n, ranks, ranksPerHost: 2 }, measured),
  prepare(group, n) {
    const u = new PackedBits(n);
    return () => carryAlone(vote, group, u, { outcome: "plus" }, { schemes: { votes: votesOfHosts } });
  },
  close: (group) => votesOfHosts.close(group),
};

const means = (["f32", "bf16", "int8"] as const).map(
  (type): Exchange => ({
    name: `mean ${type}`,
    predict: (n, ranks, measured) => predictMean(type, { n, ranks }, measured),
    prepare(group, n) {
      const x = new Float32Array(n).fill(1);
      return () => carryAlone(mean, group, x, {}, { schemes: { means: dense(type) } });
    },
  }),
);

export const exchanges: readonly Exchange[] = [...means, ...votes, ofHosts];

/** A pause before each run, like that of a step's backward, in which token buckets fill. */
export const pause = () => new Promise((done) => setTimeout(done, 10));

/** The number of runs of an exchange that takes `seconds`. The first run, which touches new memory, is not counted. */
export const runsOf = (seconds: number) => Math.max(5, Math.min(20, Math.ceil(0.15 / seconds)));
