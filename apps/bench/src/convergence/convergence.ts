/**
 * `bench convergence`: every method trains the same small GPT (recipe.yaml) with four workers, at the settings that a
 * search of as many runs finds for each (settings.ts), with three seeds; each seed has its own weights and tokens, the
 * same for every method. A method is a setting of the suite, and can be measured again alone. Losses and bytes do not
 * depend on the machine's speed.
 *
 * More settings, 100mbit and 10mbit, time each kind of step of every method, with four processes whose links `netlab`
 * limits; 100mbit-pytorch and 10mbit-pytorch time PyTorch's. The seconds of a run are these times, once for each of its
 * steps (times.ts).
 */
import { fileURLToPath } from "node:url";
import { readRecipe } from "@terse/train/recipe";
import { Hosts } from "../hosts/hosts.ts";
import { keptRun } from "../kept-runs.ts";
import { type Measurement, median } from "../measurement.ts";
import { queue } from "../queue.ts";
import type { Suite } from "../suite.ts";
import { curvesOf, isPyTorchs, reference, tolerance } from "./curves.ts";
import { Known } from "./known.ts";
import { kinds, lossesAt, lossesOf } from "./losses.ts";
import { type Hook, intervalOf, methods } from "./methods.ts";
import type { Settings } from "./search.ts";
import { withSeeds } from "./searched.ts";
import { budget, overridesOf, searchOf } from "./settings.ts";
import { leastTimes, meansByBytes, timesByBytes } from "./times.ts";
import { Trainers } from "./trainers.ts";
import { received, type Trained } from "./training.ts";

export const workers = 4;
const seeds = [1, 2, 3];
export const rates = ["100mbit", "10mbit"];

export const recipe: string = fileURLToPath(new URL("./recipe.yaml", import.meta.url));
const program = new URL("./link-host.ts", import.meta.url);
const every = 20; // steps between evaluations
const [timedRuns, timedSteps, timedIntervals] = [2, 8, 5];
const known = new Known("convergence");

export const convergence: Suite = {
  ...Object.fromEntries(
    Object.keys(methods).map((name) => [name, ({ overrides }) => known.remember(losses(name, overrides))]),
  ),
  // PyTorch's first: what ours are compared with
  ...Object.fromEntries(
    rates.map((rate) => [`${rate}-pytorch`, ({ overrides }) => known.remember(times(rate, overrides, isPyTorchs))]),
  ),
  ...Object.fromEntries(rates.map((rate) => [rate, ({ overrides }) => known.remember(seconds(rate, overrides))])),
};

/** The losses of a method, and how many steps sent how many bytes. */
async function* losses(name: string, given: readonly string[]): AsyncGenerator<Measurement> {
  const method = methods[name]!;
  await using runs = await openRuns(given.length > 0 ? undefined : `convergence/${name}`, method.hook);
  const whole = readRecipe(recipe, given).steps;
  const train = (chosen: Settings, seed: number, steps = whole) =>
    runs.train([...method.changes, ...given, ...overridesOf(chosen, steps), `seed=${seed}`, `steps=${steps}`]);

  const searching =
    typeof method.lr === "number"
      ? searchOf(method, method.lr, given)
      : { chosen: known.settings(method.lr, name, given) };
  const found = yield* withSeeds(name, seeds, searching, budget, train);
  yield* lossesOf(name, seeds, found);

  // A method that ends above the reference with some seed gets a run of twice as many steps, and one that is there
  // before the end a run of half as many: the schedule of the whole run hides what the half could do.
  if (name === reference || (typeof method.lr === "string" && !isPyTorchs(name))) return;
  const ends = seeds.map((seed) => known.value(`${reference}, seed ${seed}`, "validation_loss", given));
  if (ends.includes(undefined)) return;
  const isThere = ({ loss }: { loss: number }, i: number) => loss <= tolerance * ends[i]!;
  const isEarly = ({ points }: Trained, i: number) => points.slice(0, -1).some((point) => isThere(point, i));
  if (!found.runs.every(({ points }, i) => isThere(points.at(-1)!, i)))
    yield* other(`${name}, twice the steps`, 2 * whole);
  else if (found.runs.every(isEarly)) yield* other(`${name}, half the steps`, Math.round(whole / 2));

  async function* other(inCase: string, steps: number): AsyncGenerator<Measurement> {
    const run = await train(found.chosen, seeds[0]!, steps);
    yield* lossesAt(inCase, run);
    yield* kinds(inCase, run);
  }
}

/** The time of each kind of step on links of a rate, for the methods that `isAsked`. */
async function* times(
  rate: string,
  given: readonly string[],
  isAsked: (name: string) => boolean,
): AsyncGenerator<Measurement> {
  for (const [name, { changes, hook, timed = [] }] of Object.entries(methods)) {
    if (!isAsked(name)) continue;
    const inCase = { case: `${name}, ${rate}` };
    const { times, sent } = await timesOnLinks(rate, [...changes, ...given, "seed=1", ...timed], hook);
    for (const [bytes, value] of times) yield { ...inCase, metric: `ms_of_${bytes}`, value, unit: "ms" };
    if (hook) yield { ...inCase, metric: "sent_per_step", value: sent, unit: "B" };
  }
}

/** The times of our methods, and what follows for the losses and the times of PyTorch's that are recorded. */
async function* seconds(rate: string, given: readonly string[]): AsyncGenerator<Measurement> {
  yield* times(rate, given, (name) => !isPyTorchs(name));
  // Times of steps that a method sends no more
  const others = known.recorded(given).filter(({ setting }) => setting !== rate);
  for (const curve of curvesOf([...others, ...known.measured])) {
    const value = curve.toLoss(rate)?.ratio;
    if (value !== undefined) yield { case: `${curve.method}, ${rate}`, metric: "time_to_loss", value, unit: "ratio" };
  }
}

interface Runs extends AsyncDisposable {
  train(overrides: readonly string[]): Promise<Trained>;
}

/** Runs of a method: ours several at once, PyTorch's one after the other. `setting`: for which finished runs are kept. */
async function openRuns(setting: string | undefined, hook: Hook | undefined): Promise<Runs> {
  if (hook === undefined) {
    const trainers = await Trainers.open(setting);
    return {
      train: (overrides) => trainers.train({ recipe, overrides, workers, every }),
      [Symbol.asyncDispose]: () => trainers[Symbol.asyncDispose](),
    };
  }
  const hosts = await Hosts.open({ hosts: workers, program });
  const inTurn = queue();
  return {
    train: (overrides) => {
      const asked = { recipe, overrides, take: readRecipe(recipe, overrides).steps, every, hook };
      const trained = async () => {
        const [first] = await hosts.ask<Trained>({ do: "pytorch", ...asked });
        const run = received(first!);
        // Bytes are counted on links of their own only: here the counter would show the traffic of the whole machine.
        return { ...run, steps: run.steps.map((step) => ({ ...step, bytes: 0 })) };
      };
      return inTurn(() => keptRun(setting, asked, trained));
    },
    async [Symbol.asyncDispose]() {
      await hosts.ask({ do: "close" });
      await hosts[Symbol.asyncDispose]();
    },
  };
}

/**
 * Milliseconds of a step by its bytes, in a few steps of all ranks on links of their own; a step takes as long as on
 * its slowest rank. And what a step sends.
 */
export async function timesOnLinks(
  rate: string,
  overrides: readonly string[],
  hook: Hook | undefined,
): Promise<{ times: Map<number, number>; sent: number }> {
  const interval = intervalOf(hook);
  const take = interval === undefined ? timedSteps : timedIntervals * interval;
  const runs: Trained["steps"][] = [];
  for (let run = 0; run < timedRuns; run++) {
    const ranks = await ranksOnLinks(rate, overrides, { hook, take });
    runs.push(interval === undefined ? slowest(ranks) : ranks[0]!); // others wait only once an interval
  }
  // PyTorch's bytes differ from step to step, by the headers of packets. PowerSGD sends everything in its first steps.
  const alike = (steps: Trained["steps"]) => steps.map((step) => ({ ...step, bytes: 0 }));
  const sent = runs.flatMap((steps) => steps.slice(interval ?? 3)).map(({ bytes }) => bytes);
  if (interval !== undefined) {
    const times = leastTimes(runs.map((steps) => meansByBytes(alike(steps), interval)));
    return { times, sent: sent.reduce((sum, bytes) => sum + bytes, 0) / sent.length };
  }
  const kinds = hook ? runs.map((steps) => alike(steps.slice(3))) : runs;
  return { times: leastTimes(kinds.map(timesByBytes)), sent: median(sent) };
}

function slowest(ranks: readonly Trained["steps"][]): Trained["steps"] {
  return ranks[0]!.map(({ bytes }, i) => ({
    bytes,
    milliseconds: Math.max(...ranks.map((steps) => steps[i]!.milliseconds)),
  }));
}

/** The first steps of each rank on links of their own, `rate` as in `Hosts`. */
export async function ranksOnLinks(
  rate: string,
  overrides: readonly string[],
  { take, hook }: { readonly take: number; readonly hook?: Hook | undefined },
): Promise<Trained["steps"][]> {
  await using hosts = await Hosts.open({ hosts: workers, rate, program });
  const asked = { recipe, overrides, take, every: 0 };
  const ranks = await hosts.ask<Trained>(hook ? { do: "pytorch", ...asked, hook } : { do: "ours", ...asked });
  await hosts.ask({ do: "close" });
  return ranks.map(({ steps }) => steps);
}
