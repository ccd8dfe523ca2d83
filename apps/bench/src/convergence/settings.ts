/** What is searched for every method alike, as overrides of the recipe and in the names of what is recorded. */
import type { Method } from "./methods.ts";
import { type Axis, among, doubling, type Settings } from "./search.ts";

/** Runs of one search, the same for every method. */
export const budget = 20;

interface Setting {
  readonly key: string; // in the recipe
  readonly axis: Axis;
  text(value: number, steps: number): string;
}

/** The longest that a recipe takes, as a part of the run: a longer one is cut to it. */
export const longestWarmup = 0.5;

/** The rate; the warm-up, as a part of the run; β₂ of Adam's family. */
const settings: Readonly<Record<string, Setting>> = {
  lr: { key: "optimizer.lr", axis: doubling, text: String },
  warmup: {
    key: "schedule.warmup",
    axis: among([0.05, 0.1, 0.3, longestWarmup]),
    text: (part, steps) => String(Math.round(part * steps)),
  },
  beta2: { key: "optimizer.beta2", axis: among([0.95, 0.99, 0.999]), text: String },
};

/** Where the search of a method begins, and along which axes it goes; none for a key that the user gives. */
export function searchOf({ searchesBeta2 }: Pick<Method, "searchesBeta2">, lr: number, given: readonly string[]) {
  const start: Settings = { lr, warmup: 0.3, ...(searchesBeta2 && { beta2: 0.999 }) };
  const isGiven = (name: string) => given.some((word) => word.startsWith(`${settings[name]!.key}=`));
  const names = Object.keys(start).filter((name) => !isGiven(name));
  const pick = <T>(of: (name: string) => T) => Object.fromEntries(names.map((name) => [name, of(name)]));
  return {
    start: pick((name) => start[name]!),
    axes: pick((name) => settings[name]!.axis),
    together: ["lr", "warmup"].every((name) => names.includes(name)) ? ["lr", "warmup"] : [],
  };
}

/** Overrides for a run of so many steps. */
export const overridesOf = (chosen: Settings, steps: number): string[] =>
  Object.entries(chosen).map(([name, value]) => `${settings[name]!.key}=${settings[name]!.text(value, steps)}`);

/** "lr_0.004_warmup_0.3" */
export const nameOf = (chosen: Settings): string =>
  Object.entries(chosen)
    .map(([name, value]) => `${name}_${Number(value.toPrecision(3))}`)
    .join("_");

/** The settings among recorded metrics. */
export function chosenIn(recorded: (metric: string) => number | undefined): Settings {
  const found = Object.keys(settings).flatMap((name) => {
    const value = recorded(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(found);
}
