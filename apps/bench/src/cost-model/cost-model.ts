/**
 * `bench cost-model`: α, β and the codecs' speed measured on a group, what `predict.ts` makes of them, and what exchanges then take.
 * Links are emulated; at 1 Gbit/s two cores are as much in the way as the link.
 */
import type { Group } from "@terse/collectives";
import {
  Bits,
  dense,
  type LinkCost,
  type Measured,
  measureLink,
  type Prediction,
  predictedVotes,
  predictMean,
  predictVote,
  predictVoteOfHosts,
  voteSchemes,
} from "@terse/exchange";
import { engines } from "../collectives/collectives.ts";
import { type Measurement, median } from "../measurement.ts";
import type { Suite } from "../suite.ts";

/** Elements so that the slowest exchange takes a second, and the fastest many times the latency. */
const settings = [
  { link: "20mbit,1ms", n: 2 ** 18 },
  { link: "100mbit,1ms", n: 2 ** 20 },
  { link: "1gbit,100us", n: 2 ** 22 },
];
const small = 2 ** 14; // a vote that is all latency

/** Four ranks' Gloo threads on two cores would measure the scheduler. */
const worlds: readonly [string, readonly number[]][] = [
  ["loopback", [2, 3, 4]],
  ["tcp", [2]],
  ["gloo", [2]],
];

interface Exchange {
  readonly name: string;
  predict(n: number, ranks: number, measured: Measured): Prediction;
  /** Makes what one exchange needs; what it returns runs it. */
  prepare(group: Group, n: number): () => Promise<unknown>;
  /** How many it is for; any unless given. */
  readonly ranks?: number;
  close?(group: Group): Promise<void>;
}

const votes = predictedVotes.map((scheme): Exchange => {
  const votes = voteSchemes[scheme]();
  return {
    name: `vote ${scheme}`,
    predict: (n, ranks, measured) => predictVote(scheme, { n, ranks }, measured),
    prepare(group, n) {
      const u = new Bits(n);
      return () => votes.vote(group, u, { outcome: "plus" });
    },
  };
});

/** Two hosts, which vote. */
const hierarchical = voteSchemes.hierarchical({ hosts: 2 });
const ofHosts: Exchange = {
  name: "vote hierarchical",
  ranks: 4,
  predict: (n, ranks, measured) => predictVoteOfHosts({ n, ranks, ranksPerHost: 2 }, measured),
  prepare(group, n) {
    const u = new Bits(n);
    return () => hierarchical.vote(group, u, { outcome: "plus" });
  },
  close: (group) => hierarchical.close(group),
};

const means = (["f32", "bf16"] as const).map(
  (type): Exchange => ({
    name: `mean ${type}`,
    predict: (n, ranks, measured) => predictMean(type, { n, ranks }, measured),
    prepare(group, n) {
      const x = new Float32Array(n).fill(1);
      return () => dense(type).mean(group, x);
    },
  }),
);

/** Engines and links. */
export const costModel: Suite = Object.fromEntries(
  worlds.flatMap(([engine, sizes]) =>
    settings.map(({ link, n }) => [`${engine}-${link.split(",")[0]}`, () => predictAndMeasure(engine, sizes, link, n)]),
  ),
);

async function* predictAndMeasure(
  engine: string,
  sizes: readonly number[],
  link: string,
  n: number,
): AsyncGenerator<Measurement> {
  const worst = { worst_error: 0, worst_error_small: 0 };
  for (const ranks of sizes) {
    await using world = await engines[engine]!(ranks, link);
    const where = `${engine} ${link} ×${ranks}`;
    const begin = performance.now();
    const [measured] = await Promise.all(world.groups.map(measureLink));
    yield { case: where, metric: "measuring", value: (performance.now() - begin) / 1000, unit: "s" };
    yield* linkOf(where, measured!.link);
    const machine = shared(measured!, ranks);
    for (const { name, predict, prepare, close, ranks: only = ranks } of [...means, ...votes, ofHosts]) {
      if (only !== ranks) continue;
      for (const length of name.startsWith("vote") ? [small, n] : [n]) {
        const predicted = predict(length, ranks, machine).seconds;
        const seconds = await measure(world.groups, (group) => prepare(group, length));
        const error = predicted / seconds - 1;
        const what = `${name} ${length} ${where}`;
        yield { case: what, metric: "predicted", value: 1000 * predicted, unit: "ms" };
        yield { case: what, metric: "measured", value: 1000 * seconds, unit: "ms" };
        yield { case: what, metric: "error", value: error, unit: "fraction" };
        const which = length === small ? "worst_error_small" : "worst_error";
        worst[which] = Math.max(worst[which], Math.abs(error));
      }
      await Promise.all(world.groups.map((group) => close?.(group)));
    }
  }
  for (const [metric, value] of Object.entries(worst))
    yield { case: `${engine} ${link}`, metric, value, unit: "fraction" };
}

function* linkOf(where: string, { alpha, alphaLong, perMessage, beta }: LinkCost): Generator<Measurement> {
  yield { case: where, metric: "alpha", value: 1e6 * alpha, unit: "µs" };
  yield { case: where, metric: "alpha_long", value: 1e6 * alphaLong, unit: "µs" };
  yield { case: where, metric: "per_message", value: 1e6 * perMessage, unit: "µs" };
  yield { case: where, metric: "rate", value: 8e-6 / beta, unit: "Mbit/s" };
}

/** All ranks of this world compute on one thread, one after the other. */
function shared({ link, codec }: Measured, ranks: number): Measured {
  const slower = Object.entries(codec).map(([work, seconds]) => [work, ranks * seconds]);
  return { link, codec: Object.fromEntries(slower) as Measured["codec"] };
}

/** From when all ranks have called it until the last one has the result; the median of several. */
async function measure(groups: readonly Group[], prepare: (group: Group) => () => Promise<unknown>): Promise<number> {
  const runs = groups.map(prepare);
  const times: number[] = [];
  let all = 0;
  while (times.length < 4 || (all < 0.15 && times.length < 20)) {
    await Promise.all(groups.map((group) => group.barrier()));
    const begin = performance.now();
    await Promise.all(runs.map((run) => run()));
    const seconds = (performance.now() - begin) / 1000;
    times.push(seconds);
    all += seconds;
  }
  return median(times.slice(1)); // the first one touches new memory
}
