/**
 * `bench recipe`: the default recipe with few bits and with 32. Four workers in one process train it as `./terse train`
 * would with each method: the same weights and tokens for every method, other ones for every seed.
 */
import { defaultRecipe } from "@terse/train/recipe";
import { kinds } from "../convergence/convergence.ts";
import { Trainers } from "../convergence/trainers.ts";
import type { Measurement } from "../measurement.ts";
import type { Suite } from "../suite.ts";

export const workers = 4;
const seeds = [1, 2, 3];
const every = 20; // steps between evaluations

/** Lion's authors advise a third to a tenth of AdamW's learning rate, and as much more decay. */
const ofLion = (name: string, lr: number) => [
  `optimizer.name=${name}`,
  `optimizer.lr=${lr}`,
  "optimizer.weightDecay=0.1",
];
/** As in the small recipes of Lion and Lion Cub. */
const lion = [...ofLion("lion", 5e-4), "optimizer.beta2=0.95", "optimizer.clipBy=global"];
const lionCub = [
  ...ofLion("lion-cub", 5e-4),
  "optimizer.beta2=0.95",
  "optimizer.momentumSync.segments=first-and-last",
  "optimizer.momentumSync.every=10",
];
const ofLamb = ["optimizer.lr=1e-2", "optimizer.weightDecay=0.01"];
const oneBitLamb = ["optimizer.name=one-bit-lamb", ...ofLamb, "optimizer.warmup=0.2"];

/**
 * What each method changes in the recipe. Another optimizer than the recipe's is without its compression of gradients.
 */
export const methods: Readonly<Record<string, readonly string[]>> = {
  "adamw-terngrad": [],
  adamw: ["exchange.gradient=null", "optimizer.lr=9e-4", "optimizer.weightDecay=0.033"],
  lamb: ["optimizer.name=lamb", ...ofLamb],
  "one-bit-lamb": [...oneBitLamb, "exchange.dense=bf16"],
  "one-bit-lamb-f32-warmup": oneBitLamb,
  "one-bit-lamb-clip-global": [...oneBitLamb, "exchange.dense=bf16", "optimizer.clipBy=global"],
  lion,
  "lion-cub": lionCub,
  "lion-cub-clip-global": [...lionCub, "optimizer.clipBy=global"],
  "distributed-lion": ofLion("distributed-lion", 3e-4),
  "distributed-lion-average": [...ofLion("distributed-lion", 3e-4), "optimizer.vote=average"],
};

export const recipe: Suite = Object.fromEntries(
  Object.keys(methods).map((method) => [method, ({ overrides }) => measure(method, overrides)]),
);

/** `loss_at_STEP` is the validation loss, in nats per byte; the last of them is also `validation_loss`. */
async function* measure(method: string, given: readonly string[]): AsyncGenerator<Measurement> {
  await using trainers = await Trainers.open(given.length > 0 ? undefined : `recipe/${method}`);
  const changes = [...methods[method]!, ...given];
  const runs = await Promise.all(
    seeds.map((seed) =>
      trainers.train({ recipe: defaultRecipe.href, overrides: [...changes, `seed=${seed}`], workers, every }),
    ),
  );
  const unit = "nats/byte";
  for (const [i, { points }] of runs.entries()) {
    const inCase = { case: `${method}, seed ${seeds[i]}` };
    yield { ...inCase, metric: "validation_loss", value: points.at(-1)!.loss, unit };
    for (const { step, loss } of points) yield { ...inCase, metric: `loss_at_${step}`, value: loss, unit };
  }
  yield* kinds(method, runs[0]!);
}
