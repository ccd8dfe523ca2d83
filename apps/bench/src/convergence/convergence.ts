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
import type { Suite } from "../suite.ts";
import { curvesOf, isPyTorchs, reference, tolerance } from "./curves.ts";
import { Known } from "./known.ts";
import { type Hook, methods } from "./methods.ts";
import type { Settings } from "./search.ts";
import { searched } from "./searched.ts";
import { budget, overridesOf, searchOf } from "./settings.ts";
import { countKinds, leastTimes, timesByBytes } from "./times.ts";
import { Trainers } from "./trainers.ts";
import { received, type Trained } from "./training.ts";

export const workers = 4;
const seeds = [1, 2, 3];
export const rates = ["100mbit", "10mbit"];

export const recipe: string = fileURLToPath(new URL("./recipe.yaml", import.meta.url));
const program = new URL("./link-host.ts", import.meta.url);
const every = 20; // steps between evaluations
const [timedRuns, timedSteps] = [2, 8];
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
  await using runs = await Runs.open(given.length > 0 ? undefined : `convergence/${name}`, method.hook);
  const whole = readRecipe(recipe, given).steps;
  const train = (chosen: Settings, seed: number, steps = whole) =>
    runs.train([...method.changes, ...given, ...overridesOf(chosen, steps), `seed=${seed}`, `steps=${steps}`]);
  const unit = "nats/byte";

  // The settings, and the run with the first seed, which is the search's
  const { chosen, run: first } =
    typeof method.lr === "number"
      ? yield* searched(name, searchOf(method, method.lr, given), budget, (settings) => train(settings, seeds[0]!))
      : { chosen: known.settings(method.lr, name, given) };
  const trained = await Promise.all(seeds.map((seed, i) => (i === 0 && first) || train(chosen, seed)));
  for (const [i, run] of trained.entries()) {
    const inCase = { case: `${name}, seed ${seeds[i]}` };
    yield { ...inCase, metric: "validation_loss", value: lossOf(run), unit };
    for (const [setting, value] of Object.entries(chosen)) yield { ...inCase, metric: setting, value, unit: "" };
    yield* lossesAt(inCase.case, run);
  }
  yield* kinds(name, trained[0]!);

  // A method that ends above the reference with some seed gets a run of twice as many steps, and one that is there
  // before the end a run of half as many: the schedule of the whole run hides what the half could do.
  if (name === reference || typeof method.lr === "string") return;
  const ends = seeds.map((seed) => known.value(`${reference}, seed ${seed}`, "validation_loss", given));
  if (ends.includes(undefined)) return;
  const isThere = ({ loss }: { loss: number }, i: number) => loss <= tolerance * ends[i]!;
  const isEarly = ({ points }: Trained, i: number) => points.slice(0, -1).some((point) => isThere(point, i));
  if (!trained.every(({ points }, i) => isThere(points.at(-1)!, i)))
    yield* other(`${name}, twice the steps`, 2 * whole);
  else if (trained.every(isEarly)) yield* other(`${name}, half the steps`, Math.round(whole / 2));

  async function* other(inCase: string, steps: number): AsyncGenerator<Measurement> {
    const run = await train(chosen, seeds[0]!, steps);
    yield* lossesAt(inCase, run);
    yield* kinds(inCase, run);
  }
}

function* lossesAt(name: string, { points }: Trained): Generator<Measurement> {
  for (const { step, loss } of points) yield { case: name, metric: `loss_at_${step}`, value: loss, unit: "nats/byte" };
}

/** Bytes of a step, and how many steps of each kind there were until each evaluation. PyTorch's are of one kind. */
export function* kinds(name: string, { steps, points }: Trained): Generator<Measurement> {
  const sent = steps.map(({ bytes }) => bytes);
  yield {
    case: name,
    metric: "sent_per_step",
    value: sent.reduce((sum, bytes) => sum + bytes, 0) / sent.length,
    unit: "B",
  };
  for (const { step } of points.slice(1))
    for (const [bytes, count] of countKinds(sent.slice(0, step)))
      yield { case: name, metric: `steps_of_${bytes}_until_${step}`, value: count, unit: "" };
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
    const runs: Trained["steps"][] = [];
    for (let run = 0; run < timedRuns; run++)
      runs.push(await onLinks(rate, [...changes, ...given, "seed=1", ...timed], hook));
    // PowerSGD sends everything in its first steps.
    const alike = (steps: Trained["steps"]) => steps.slice(3).map((step) => ({ ...step, bytes: 0 }));
    for (const [bytes, value] of leastTimes(runs.map((steps) => timesByBytes(hook ? alike(steps) : steps))))
      yield { ...inCase, metric: `ms_of_${bytes}`, value, unit: "ms" };
    const sent = runs.flatMap((steps) => steps.slice(3).map(({ bytes }) => bytes));
    if (hook) yield { ...inCase, metric: "sent_per_step", value: median(sent), unit: "B" };
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

const lossOf = ({ points }: Trained) => points.at(-1)!.loss;
/** Runs of a method: ours several at once, PyTorch's one after the other. */
class Runs implements AsyncDisposable {
  readonly #ours: Trainers | undefined;
  readonly #peer: { readonly hosts: Hosts; readonly hook: Hook; readonly setting: string | undefined } | undefined;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(ours: Trainers | undefined, peer?: { hosts: Hosts; hook: Hook; setting: string | undefined }) {
    this.#ours = ours;
    this.#peer = peer;
  }

  /** `setting`: for which finished runs are kept. */
  static async open(setting: string | undefined, hook: Hook | undefined): Promise<Runs> {
    if (hook === undefined) return new Runs(await Trainers.open(setting));
    return new Runs(undefined, { hosts: await Hosts.open({ hosts: workers, program }), hook, setting });
  }

  train(overrides: readonly string[]): Promise<Trained> {
    if (this.#ours) return this.#ours.train({ recipe, overrides, workers, every });
    const { hosts, hook, setting } = this.#peer!;
    const take = readRecipe(recipe, overrides).steps;
    const asked = { recipe, overrides, take, every, hook };
    const trained = async () => {
      const [first] = await hosts.ask<Trained>({ do: "pytorch", ...asked });
      const run = received(first!);
      // Bytes are counted on links of their own only: here the counter would show the traffic of the whole machine.
      return { ...run, steps: run.steps.map((step) => ({ ...step, bytes: 0 })) };
    };
    const run = this.#last.then(() => keptRun(setting, asked, trained));
    this.#last = run.catch(() => {});
    return run;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#ours?.[Symbol.asyncDispose]();
    await this.#peer?.hosts.ask({ do: "close" });
    await this.#peer?.hosts[Symbol.asyncDispose]();
  }
}

/** A few steps of all ranks on links of their own; a step takes as long as on its slowest rank. */
async function onLinks(rate: string, overrides: readonly string[], hook: Hook | undefined): Promise<Trained["steps"]> {
  return slowest(await ranksOnLinks(rate, overrides, { hook, take: timedSteps }));
}

export function slowest(ranks: readonly Trained["steps"][]): Trained["steps"] {
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
