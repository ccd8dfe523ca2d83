/**
 * `bench cost-model`: measures α, β and the codecs' speed on a group, predicts the times of exchanges from them
 * (predict.ts of @terse/exchange), and measures these exchanges: over tcp, with each rank on its own host behind a link
 * that the kernel limits, and in one process on emulated links.
 */
import type { LinkCost } from "@terse/exchange";
import { type Measurement, median } from "../measurement.ts";
import type { Suite } from "../suite.ts";
import { exchanges } from "./exchanges.ts";
import { inOneProcess, onHosts, type World } from "./worlds.ts";

/**
 * Links, and numbers of elements with which the slowest exchange takes a second, and the fastest many times the
 * latency.
 */
const links = [
  { rate: "20mbit", latency: "1ms", n: 2 ** 18 },
  { rate: "100mbit", latency: "1ms", n: 2 ** 20 },
  { rate: "1gbit", latency: "100us", n: 2 ** 22 },
];
const small = 2 ** 14; // a vote that takes little more than the latency

const sizes = [2, 3, 4];

/** A setting for each engine and link. */
export const costModel: Suite = Object.fromEntries(
  ["tcp", "loopback", "gloo"].flatMap((engine) =>
    links.map((link) => [`${engine}-${link.rate}`, () => predictAndMeasure(engine, link)]),
  ),
);

async function* predictAndMeasure(
  engine: string,
  { rate, latency, n }: (typeof links)[number],
): AsyncGenerator<Measurement> {
  const worst = { worst_error: 0, worst_error_small: 0 };
  let link = engine === "tcp" ? rate : `${rate},${latency}`;
  for (const ranks of sizes) {
    await using world: World & { emulated?: boolean } =
      engine === "tcp" ? await onHosts(ranks, rate) : await inOneProcess(engine, ranks, link);
    if (world.emulated) link = `${rate} emulated`;
    const where = `${engine} ${link} ×${ranks}`;
    const begin = performance.now();
    const measured = await world.measure();
    yield { case: where, metric: "measuring", value: (performance.now() - begin) / 1000, unit: "s" };
    yield* linkOf(where, measured.link);
    for (const exchange of exchanges) {
      const { name, predict, ranks: only = ranks } = exchange;
      if (only !== ranks) continue;
      for (const length of name.startsWith("vote") ? [small, n] : [n]) {
        const predicted = predict(length, ranks, measured).seconds;
        const seconds = median(await world.run(exchange, length));
        const error = predicted / seconds - 1;
        const what = `${name} ${length} ${where}`;
        yield { case: what, metric: "predicted", value: 1000 * predicted, unit: "ms" };
        yield { case: what, metric: "measured", value: 1000 * seconds, unit: "ms" };
        yield { case: what, metric: "error", value: error, unit: "fraction" };
        const which = length === small ? "worst_error_small" : "worst_error";
        worst[which] = Math.max(worst[which], Math.abs(error));
      }
    }
  }
  for (const [metric, value] of Object.entries(worst))
    yield { case: `${engine} ${link}`, metric, value, unit: "fraction" };
}

function* linkOf(where: string, link: LinkCost): Generator<Measurement> {
  yield { case: where, metric: "alpha", value: 1e6 * link.alpha, unit: "µs" };
  yield { case: where, metric: "alpha_long", value: 1e6 * link.alphaLong, unit: "µs" };
  yield { case: where, metric: "per_message", value: 1e6 * link.perMessage, unit: "µs" };
  yield { case: where, metric: "per_exchange", value: 1e6 * link.perExchange, unit: "µs" };
  yield { case: where, metric: "rate", value: 8e-6 / link.beta, unit: "Mbit/s" };
  yield { case: where, metric: "burst", value: link.burst, unit: "B" };
}
