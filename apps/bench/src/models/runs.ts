/**
 * What a model reaches on real data: each method trains it with two processes, at the best learning rate of a search
 * with the first seed, and with a second seed at that rate. Both seeds have the same data; the weights and the order of
 * the data are a seed's.
 */
import { doubling, search } from "../convergence/search.ts";
import { received, type Trained } from "../convergence/training.ts";
import { Hosts } from "../hosts/hosts.ts";
import type { Measurement } from "../measurement.ts";
import { queue } from "../queue.ts";
import type { Suite } from "../suite.ts";
import { dataOf, methods, type Task, tasks } from "./tasks.ts";

export const ranks = 2;
const seeds = [1, 2];
const rates = 7; // that a search tries at most

const program = new URL("./run-host.ts", import.meta.url);

export const settingOf = (task: string, method: string) => `${task}-${method}`;

export const runs: Suite = Object.fromEntries(
  Object.keys(tasks).flatMap((task) =>
    Object.keys(methods).map((method) => [
      settingOf(task, method),
      ({ overrides }) => measure(settingOf(task, method), tasks[task as keyof typeof tasks], method, overrides),
    ]),
  ),
);

async function* measure(
  name: string,
  task: Task,
  method: string,
  given: readonly string[],
): AsyncGenerator<Measurement> {
  const changes = [`data.path=${dataOf(task)}`, ...methods[method as keyof typeof methods], ...given];
  await using hosts = await Hosts.open({ hosts: ranks, program });
  const train = async (lr: number, seed: number): Promise<Trained> => {
    const overrides = [...changes, `optimizer.lr=${lr}`, `seed=${seed}`];
    const [first] = await hosts.ask<Trained>({ do: "train", recipe: task.recipe.href, overrides });
    return received(first!);
  };
  const inTurn = queue();

  const [first, ...others] = seeds as [number, ...number[]];
  const found = new Map<number, Trained>();
  const lossAt = (lr: number) =>
    inTurn(async () => {
      const run = await train(lr, first);
      found.set(lr, run);
      return run.points.at(-1)!.loss;
    });
  const start = { lr: task.rates[method as keyof typeof methods] };
  const { tried } = await search(start, { lr: doubling }, ({ lr }) => lossAt(lr), { most: rates });
  for (const { settings, loss } of tried)
    yield { case: `${name}, search`, metric: `loss_at_lr_${short(settings.lr)}`, value: loss, unit: "nats" };

  const { lr } = tried[0]!.settings;
  const trained = [found.get(lr)!, ...(await Promise.all(others.map((seed) => inTurn(() => train(lr, seed)))))];
  for (const [i, { points, steps }] of trained.entries()) {
    const inCase = { case: `${name}, seed ${seeds[i]}` };
    const { loss, accuracy } = points.at(-1)!;
    yield { ...inCase, metric: "validation_loss", value: loss, unit: "nats" };
    if (accuracy !== undefined) yield { ...inCase, metric: "validation_accuracy", value: accuracy, unit: "fraction" };
    yield { ...inCase, metric: "lr", value: lr, unit: "" };
    const seconds = steps.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / 1000;
    yield { ...inCase, metric: "training_seconds", value: seconds, unit: "s" };
    for (const { step, loss } of points) yield { ...inCase, metric: `loss_at_${step}`, value: loss, unit: "nats" };
  }
  const { steps } = trained[0]!;
  const sent = steps.reduce((sum, { bytes }) => sum + bytes, 0) / steps.length;
  yield { case: name, metric: "sent_per_step", value: sent, unit: "B" };
  await hosts.ask({ do: "close" });
}

const short = (value: number) => Number(value.toPrecision(3));
